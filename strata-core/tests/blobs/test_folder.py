"""Blobs in a folder: whole, durable, and nowhere else."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from strata_core.blobs import FileSystemBlobStore, InMemoryBlobStore, _files, thread_folder
from strata_core.errors import InvalidInputError, StoreUnavailableError
from strata_core.ports import BlobStore

CONTENT = b'"' + b"x" * 100_000 + b'"'


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


DIGEST = digest_of(CONTENT)


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


@pytest.fixture(params=["folder", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return FileSystemBlobStore(tmp_path / "blobs") if request.param == "folder" else InMemoryBlobStore()


class TestEveryStore:
    def test_what_was_put_is_got(self, blobs: BlobStore) -> None:
        """The very bytes come back, also when the blob was put twice, and also when it is empty."""

        async def scenario() -> list[bytes | None]:
            await blobs.put("t", DIGEST, CONTENT)
            await blobs.put("t", DIGEST, CONTENT)
            await blobs.put("t", digest_of(b""), b"")
            return [await blobs.get("t", DIGEST), await blobs.get("t", digest_of(b""))]

        assert [CONTENT, b""] == asyncio.run(scenario())

    def test_a_missing_blob_is_none(self, blobs: BlobStore) -> None:
        """Neither an unknown thread nor an unknown blob of a known thread is an error."""

        async def scenario() -> list[bytes | None]:
            before = await blobs.get("t", DIGEST)
            await blobs.put("t", digest_of(b"1"), b"1")
            return [before, await blobs.get("t", DIGEST)]

        assert [None, None] == asyncio.run(scenario())

    @pytest.mark.parametrize(
        "thread_id",
        [
            "a",
            "A",
            "a/b",
            "../a",
            "..",
            ".",
            "*",
            "a*",
            "ä",
            "a\N{COMBINING DIAERESIS}",
            " a ",
            "a\n",
            "-rf",
            "C:\\x",
            "💾" * 30,
            "x" * 127,
            "x" * 128,
            "x" * 512,
            "é" * 256,
        ],
    )
    def test_a_thread_has_its_own_blobs(self, blobs: BlobStore, thread_id: str) -> None:
        """However alike two IDs are, one thread's delete leaves the other's blobs."""
        others = ["b", "B", "ab", "a.", "a\\b", "aa", thread_id[:100] + "\x01"]

        async def scenario() -> tuple[bytes | None, list[bytes | None]]:
            for other in others:
                await blobs.put(other, DIGEST, CONTENT)
            await blobs.put(thread_id, DIGEST, CONTENT)
            await blobs.delete_thread(thread_id)
            return await blobs.get(thread_id, DIGEST), [await blobs.get(other, DIGEST) for other in others]

        gone, kept = asyncio.run(scenario())

        assert gone is None
        assert [CONTENT] * len(others) == kept

    def test_ids_that_differ_by_case_only_are_two_threads(self, blobs: BlobStore) -> None:
        """On no file system do they share a folder."""

        async def scenario() -> bytes | None:
            await blobs.put("order", DIGEST, CONTENT)
            return await blobs.get("ORDER", DIGEST)

        assert asyncio.run(scenario()) is None

    def test_deleting_is_idempotent(self, blobs: BlobStore) -> None:
        """A thread without blobs is no error, before and after."""

        async def scenario() -> bytes | None:
            await blobs.delete_thread("t")
            await blobs.put("t", DIGEST, CONTENT)
            await blobs.delete_thread("t")
            await blobs.delete_thread("t")
            return await blobs.get("t", DIGEST)

        assert asyncio.run(scenario()) is None

    @pytest.mark.parametrize("thread_id", ["", "a\0b", "\ud800", "x" * 513, "é" * 257, None, 1, b"t"])
    @pytest.mark.parametrize("method", ["put", "get", "delete_thread"])
    def test_a_bad_thread_id_is_refused(self, blobs: BlobStore, thread_id: object, method: str, tmp_path: Path) -> None:
        """The error names the argument, and nothing was written."""
        arguments = {"put": (DIGEST, CONTENT), "get": (DIGEST,), "delete_thread": ()}[method]

        with pytest.raises(InvalidInputError) as refusal:
            asyncio.run(getattr(blobs, method)(thread_id, *arguments))

        assert "thread_id" == refusal.value.argument
        assert [] == list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "digest",
        [
            "",
            "sha256:",
            DIGEST.upper(),
            DIGEST[7:],
            f"sha1:{DIGEST[7:]}",
            DIGEST[:-1],
            f"{DIGEST}0",
            f"{DIGEST}\n",
            f"sha256:{'../' * 21}a",
            f"sha256:{'g' * 64}",
            f"sha256:{'١' * 64}",
            None,
            DIGEST.encode(),
        ],
    )
    @pytest.mark.parametrize("method", ["put", "get"])
    def test_a_bad_digest_is_refused(self, blobs: BlobStore, digest: object, method: str, tmp_path: Path) -> None:
        """The error names the argument, and nothing was written."""
        arguments = {"put": (digest, CONTENT), "get": (digest,)}[method]

        with pytest.raises(InvalidInputError) as refusal:
            asyncio.run(getattr(blobs, method)("t", *arguments))

        assert "digest" == refusal.value.argument
        assert [] == list(tmp_path.iterdir())

    @pytest.mark.parametrize("content", ["text", bytearray(b"x"), memoryview(b"x"), None])
    def test_content_that_could_change_is_refused(self, blobs: BlobStore, content: object, tmp_path: Path) -> None:
        """Only bytes are taken: what is written is what was given."""
        with pytest.raises(InvalidInputError) as refusal:
            asyncio.run(blobs.put("t", DIGEST, content))  # type: ignore[arg-type]

        assert "content" == refusal.value.argument
        assert [] == list(tmp_path.iterdir())


class TestLayout:
    def test_a_blob_is_a_file_named_by_its_hash_in_a_folder_named_by_the_hex_of_the_id(self, tmp_path: Path) -> None:
        """The layout is a promise: people and other languages read it."""
        asyncio.run(FileSystemBlobStore(tmp_path / "blobs").put("report-1", DIGEST, CONTENT))

        assert {f"7265706f72742d31/{DIGEST[7:]}"} == files_below(tmp_path / "blobs")

    def test_the_longest_id_that_is_spelled_out_has_127_bytes(self) -> None:
        """Its hex still fits into one file name; one byte more, and the ID is hashed."""
        assert b"\xc3\xa9".hex() * 63 + "78" == thread_folder("é" * 63 + "x")
        assert "sha256-" + hashlib.sha256(("é" * 64).encode()).hexdigest() == thread_folder("é" * 64)
        assert "sha256-" + hashlib.sha256(b"x" * 512).hexdigest() == thread_folder("x" * 512)

    def test_making_the_object_and_reading_touch_nothing(self, tmp_path: Path) -> None:
        """A store that only reads, or only deletes, creates no folder."""

        async def scenario() -> bytes | None:
            blobs = FileSystemBlobStore(tmp_path / "not" / "there")
            await blobs.delete_thread("t")
            return await blobs.get("t", DIGEST)

        assert asyncio.run(scenario()) is None
        assert [] == list(tmp_path.iterdir())

    def test_a_relative_root_stays_where_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A later change of the working directory does not move the blobs."""
        monkeypatch.chdir(tmp_path)
        blobs = FileSystemBlobStore("missing/../blobs")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")

        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert {f"blobs/74/{DIGEST[7:]}"} == files_below(tmp_path)
        assert tmp_path / "blobs" == blobs.root

    @pytest.mark.parametrize("root", ["", "a\0b", None, 1, b"blobs"])
    def test_a_root_that_is_no_path_is_refused(self, root: object) -> None:
        """The error names the argument."""
        with pytest.raises(InvalidInputError) as refusal:
            FileSystemBlobStore(root)  # type: ignore[arg-type]

        assert "root" == refusal.value.argument

    def test_a_root_that_is_a_file_is_refused_before_anything_is_put(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"precious")

        with pytest.raises(InvalidInputError, match="is a file; name a folder") as refusal:
            FileSystemBlobStore(tmp_path / "file")

        assert "root" == refusal.value.argument
        assert b"precious" == (tmp_path / "file").read_bytes()

    def test_files_follow_the_umask(self, tmp_path: Path) -> None:
        """Who may read a blob is the operator's choice, as for any other file."""
        before = os.umask(0o027)
        try:
            asyncio.run(FileSystemBlobStore(tmp_path).put("t", DIGEST, CONTENT))
        finally:
            os.umask(before)

        assert 0o640 == stat.S_IMODE((tmp_path / "74" / DIGEST[7:]).stat().st_mode)


class Recorder:
    """Notes what happens to which file, and lets it happen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.steps: list[tuple[str, str]] = []
        self._root = root
        self._names: dict[int, str] = {}
        real_open, real_fsync, real_mkdir, real_replace, real_rmdir = os.open, os.fsync, os.mkdir, os.replace, os.rmdir

        def open_(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            fd = real_open(path, flags, mode, dir_fd=dir_fd)
            self._names[fd] = str(Path(f"/proc/self/fd/{fd}").readlink())
            return fd

        def fsync(fd: int) -> None:
            self._note("fsync", self._names[fd])
            real_fsync(fd)

        def mkdir(path: Path, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
            real_mkdir(path, mode, dir_fd=dir_fd)
            self._note("mkdir", str(path))

        def replace(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
            real_replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            self._note("rename", f"{self._names[dst_dir_fd]}/{target}")

        def rmdir(path: str, *, dir_fd: int) -> None:
            real_rmdir(path, dir_fd=dir_fd)
            self._note("rmdir", f"{self._names[dir_fd]}/{path}")

        for name, function in [
            ("open", open_),
            ("fsync", fsync),
            ("mkdir", mkdir),
            ("replace", replace),
            ("rmdir", rmdir),
        ]:
            monkeypatch.setattr(os, name, function)

    def _note(self, verb: str, path: str) -> None:
        name = os.path.relpath(path, self._root)
        self.steps.append((verb, "unfinished" if name.endswith(".tmp") else name))


class TestDurability:
    def test_a_file_is_synced_before_it_gets_its_name_and_every_new_folder_before_it_is_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a power cut there is the whole blob or none, and an acknowledged one is there."""
        blobs = FileSystemBlobStore(tmp_path / "a" / "b")
        recorder = Recorder(monkeypatch, tmp_path)

        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert [
            ("mkdir", "a"),
            ("fsync", "."),
            ("mkdir", "a/b"),
            ("fsync", "a"),
            ("mkdir", "a/b/74"),
            ("fsync", "a/b"),
            ("fsync", "unfinished"),
            ("rename", f"a/b/74/{DIGEST[7:]}"),
            ("fsync", "a/b/74"),
        ] == recorder.steps

    def test_a_folder_that_somebody_else_made_is_synced_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its maker may not have come so far, and this blob is acknowledged first."""
        (tmp_path / "a" / "74").mkdir(parents=True)
        blobs = FileSystemBlobStore(tmp_path / "a")
        recorder = Recorder(monkeypatch, tmp_path)

        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert [
            ("fsync", "."),
            ("fsync", "a"),
            ("fsync", "unfinished"),
            ("rename", f"a/74/{DIGEST[7:]}"),
            ("fsync", "a/74"),
        ] == recorder.steps

    def test_a_blob_that_is_there_is_synced_and_not_written_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever renamed it may not have synced the folder yet."""
        asyncio.run(FileSystemBlobStore(tmp_path).put("t", DIGEST, CONTENT))
        blobs = FileSystemBlobStore(tmp_path)
        recorder = Recorder(monkeypatch, tmp_path)

        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert [
            ("fsync", ".."),
            ("fsync", "."),
            ("fsync", f"74/{DIGEST[7:]}"),
            ("fsync", "74"),
        ] == recorder.steps

    def test_a_delete_is_synced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Blobs that came back after a power cut would never be found again: the thread's rows are gone."""
        blobs = FileSystemBlobStore(tmp_path)
        asyncio.run(blobs.put("t", DIGEST, CONTENT))
        recorder = Recorder(monkeypatch, tmp_path)

        asyncio.run(blobs.delete_thread("t"))

        assert [("rmdir", "74"), ("fsync", ".")] == recorder.steps

    def test_a_damaged_blob_is_healed_by_putting_it_again(self, tmp_path: Path) -> None:
        """Neither a shorter file nor one of the same size passes for the blob."""
        blobs = FileSystemBlobStore(tmp_path)
        file = tmp_path / "74" / DIGEST[7:]
        asyncio.run(blobs.put("t", DIGEST, CONTENT))
        healed = []

        for damage in (CONTENT[:-1], b"y" * len(CONTENT)):
            file.write_bytes(damage)
            asyncio.run(blobs.put("t", DIGEST, CONTENT))
            healed.append(file.read_bytes())

        assert [CONTENT, CONTENT] == healed

    def test_a_blob_of_many_chunks_is_compared_whole(self, tmp_path: Path) -> None:
        """The last byte counts."""
        content = bytes(3 << 20)
        blobs = FileSystemBlobStore(tmp_path)
        file = tmp_path / "74" / digest_of(content)[7:]
        asyncio.run(blobs.put("t", digest_of(content), content))
        file.write_bytes(content[:-1] + b"x")

        asyncio.run(blobs.put("t", digest_of(content), content))

        assert content == file.read_bytes()

    def test_killed_writers_leave_whole_blobs_only(self, tmp_path: Path) -> None:
        """Whatever was acknowledged is there, nothing half written has a blob's name, and a delete takes the rest."""
        script = textwrap.dedent("""
            import asyncio, hashlib, os, sys
            from strata_core.blobs import FileSystemBlobStore

            async def main():
                blobs = FileSystemBlobStore(sys.argv[1])
                while True:
                    content = os.urandom(300_000)
                    digest = "sha256:" + hashlib.sha256(content).hexdigest()
                    await blobs.put("t", digest, content)
                    os.write(1, digest.encode() + b"\\n")

            asyncio.run(main())
        """)
        acknowledged = []
        for kills_after in (1, 2, 3, 5, 8):
            with subprocess.Popen(
                [sys.executable, "-c", script, str(tmp_path / "blobs")], stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                acknowledged += [process.stdout.readline().strip() for _ in range(kills_after)]
                process.kill()
                acknowledged += process.stdout.read().split("\n")[:-1]
        folder = tmp_path / "blobs" / "74"
        named = [path for path in folder.iterdir() if not path.name.endswith(".tmp")]
        contents = {digest_of(path.read_bytes()) for path in named}

        asyncio.run(FileSystemBlobStore(tmp_path / "blobs").delete_thread("t"))

        assert set(acknowledged) <= contents
        assert {f"sha256:{path.name}" for path in named} == contents
        assert [] == list((tmp_path / "blobs").iterdir())


class TestRaces:
    def test_a_hundred_puts_of_one_blob_leave_one_file(self, tmp_path: Path) -> None:
        """No put disturbs another, and no unfinished file stays."""
        blobs = FileSystemBlobStore(tmp_path / "blobs")

        async def scenario() -> list[bytes | None]:
            await asyncio.gather(*(blobs.put("t", DIGEST, CONTENT) for _ in range(100)))
            return [await blobs.get("t", DIGEST)]

        assert [CONTENT] == asyncio.run(scenario())
        assert {f"74/{DIGEST[7:]}"} == files_below(tmp_path / "blobs")

    def test_puts_and_deletes_of_one_thread_race_without_errors_or_parts(self, tmp_path: Path) -> None:
        """A reader sees the whole blob or none, and the last delete leaves nothing."""
        stores = [FileSystemBlobStore(tmp_path / "blobs") for _ in range(3)]
        contents = [bytes([n]) * 50_000 for n in range(4)]

        async def scenario() -> set[bytes | None]:
            seen: set[bytes | None] = set()
            for _ in range(25):
                puts = [stores[0].put("t", digest_of(content), content) for content in contents]
                deletes = [stores[1].delete_thread("t") for _ in range(2)]
                gets = [stores[2].get("t", digest_of(content)) for content in contents]
                done = await asyncio.gather(*puts, *deletes, *gets)
                seen.update(done[-len(gets) :])
            await stores[1].delete_thread("t")
            return seen

        seen = asyncio.run(scenario())

        assert {None, *contents} >= seen
        assert [] == list((tmp_path / "blobs").iterdir())

    @pytest.mark.parametrize("step", ["open", "replace"])
    def test_a_put_survives_a_delete_at_any_moment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        """The folder, or the unfinished file in it, is taken away just before the step: the put starts over."""
        blobs = FileSystemBlobStore(tmp_path)
        rival = FileSystemBlobStore(tmp_path)
        real = getattr(os, step)
        interfered: list[str] = []

        def interfere(path: str, *arguments: object, **keywords: object) -> object:
            if str(path).endswith(".tmp") and not interfered:
                interfered.append(step)
                rival._delete("74")
            return real(path, *arguments, **keywords)

        monkeypatch.setattr(os, step, interfere)
        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert [step] == interfered
        assert {f"74/{DIGEST[7:]}"} == files_below(tmp_path)

    def test_a_root_that_is_taken_away_is_made_again(self, tmp_path: Path) -> None:
        """Nothing remembered stands in the way."""
        blobs = FileSystemBlobStore(tmp_path / "blobs")
        asyncio.run(blobs.put("t", DIGEST, CONTENT))
        asyncio.run(blobs.delete_thread("t"))
        (tmp_path / "blobs").rmdir()

        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert {f"blobs/74/{DIGEST[7:]}"} == files_below(tmp_path)

    def test_a_folder_that_vanishes_for_ever_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A put gives up at some point instead of spinning."""
        blobs = FileSystemBlobStore(tmp_path)

        def gone(*_: object) -> None:
            raise FileNotFoundError(errno.ENOENT, "gone")

        monkeypatch.setattr("strata_core.blobs._folder.write", gone)

        with pytest.raises(StoreUnavailableError, match="again and again") as failure:
            asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert failure.value.maybe_written is False


class TestCancellation:
    def test_a_cancelled_put_returns_once_its_thread_has_ended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Left behind, it could put the blob after the delete that follows."""
        began, go_on = threading.Event(), threading.Event()
        real = os.replace

        def held_back(*arguments: object, **keywords: object) -> None:
            began.set()
            go_on.wait()
            real(*arguments, **keywords)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "replace", held_back)
        blobs = FileSystemBlobStore(tmp_path)

        async def scenario() -> tuple[bool, bool]:
            put = asyncio.create_task(blobs.put("t", DIGEST, CONTENT))
            await asyncio.to_thread(began.wait)
            put.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
                put.cancel()  # being asked again changes nothing
            early = put.done()
            go_on.set()
            await asyncio.wait([put])
            await blobs.delete_thread("t")
            return early, put.cancelled()

        early, cancelled = asyncio.run(scenario())

        assert (False, True) == (early, cancelled)
        assert [] == list(tmp_path.iterdir())

    def test_a_put_that_has_not_begun_never_begins(self, tmp_path: Path) -> None:
        """Cancelled while it waits for a thread, it returns at once and writes nothing."""
        blobs = FileSystemBlobStore(tmp_path)
        go_on = threading.Event()

        async def scenario() -> bool:
            from concurrent.futures import ThreadPoolExecutor

            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            blocker = asyncio.create_task(asyncio.to_thread(go_on.wait))
            put = asyncio.create_task(blobs.put("t", DIGEST, CONTENT))
            for _ in range(5):
                await asyncio.sleep(0)
            put.cancel()
            await asyncio.wait([put])
            cancelled = put.cancelled()
            go_on.set()
            await blocker
            await asyncio.to_thread(bool)  # the pool has come past the abandoned work
            return cancelled

        assert asyncio.run(scenario()) is True
        assert [] == list(tmp_path.iterdir())

    def test_the_error_of_a_cancelled_put_is_nobodys(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The caller sees the cancellation, and the loop has nothing to complain about."""
        began, go_on = threading.Event(), threading.Event()
        complaints: list[object] = []

        def failing(*_: object, **__: object) -> None:
            began.set()
            go_on.wait()
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "replace", failing)
        blobs = FileSystemBlobStore(tmp_path)

        async def scenario() -> bool:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
            put = asyncio.create_task(blobs.put("t", DIGEST, CONTENT))
            await asyncio.to_thread(began.wait)
            put.cancel()
            await asyncio.sleep(0)
            go_on.set()
            await asyncio.wait([put])
            return put.cancelled()

        assert asyncio.run(scenario()) is True
        assert [] == complaints
        assert set() == files_below(tmp_path)


class TestFailures:
    @pytest.mark.parametrize(("function", "maybe_written"), [("open", False), ("replace", False), ("sync", True)])
    def test_a_failed_put_says_whether_the_blob_may_be_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, maybe_written: bool
    ) -> None:
        """Before the rename it is not; after it, it may be.  No unfinished file stays."""
        blobs = FileSystemBlobStore(tmp_path)
        full = OSError(errno.ENOSPC, "No space left on device")
        real_open = os.open

        def fail(*_: object, **__: object) -> None:
            raise full

        def fail_to_create(path: str, flags: int, *rest: object, **keywords: object) -> int:
            if flags & os.O_CREAT:
                raise full
            return real_open(path, flags, *rest, **keywords)  # type: ignore[arg-type]

        if function == "sync":
            monkeypatch.setattr("strata_core.blobs._folder.sync", fail)
        else:
            monkeypatch.setattr(os, function, fail_to_create if function == "open" else fail)

        with pytest.raises(StoreUnavailableError, match="No space left on device") as failure:
            asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert maybe_written == failure.value.maybe_written
        assert full is failure.value.__cause__
        assert ({f"74/{DIGEST[7:]}"} if maybe_written else set()) == files_below(tmp_path)

    def test_a_full_disk_in_the_middle_leaves_no_unfinished_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was begun is taken away again."""
        real = os.fsync

        def fail(fd: int) -> None:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EIO, "Input/output error")
            real(fd)

        monkeypatch.setattr(os, "fsync", fail)

        with pytest.raises(StoreUnavailableError, match="Input/output error"):
            asyncio.run(FileSystemBlobStore(tmp_path).put("t", DIGEST, CONTENT))

        assert set() == files_below(tmp_path)

    def test_a_file_system_that_syncs_no_folders_is_good_enough(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Some network file systems answer EINVAL; nothing better can be had there."""
        real = os.fsync

        def fsync(fd: int) -> None:
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "Invalid argument")
            real(fd)

        monkeypatch.setattr(os, "fsync", fsync)
        asyncio.run(FileSystemBlobStore(tmp_path).put("t", DIGEST, CONTENT))

        assert {f"74/{DIGEST[7:]}"} == files_below(tmp_path)

    def test_a_root_that_has_become_a_file_is_unavailable(self, tmp_path: Path) -> None:
        """All three calls say so, and the file stays as it is."""
        root = tmp_path / "file"
        blobs = FileSystemBlobStore(root)
        root.write_bytes(b"precious")
        failures = []

        for call in (blobs.put("t", DIGEST, CONTENT), blobs.get("t", DIGEST), blobs.delete_thread("t")):
            with pytest.raises(StoreUnavailableError) as failure:
                asyncio.run(call)
            failures.append(str(root) in str(failure.value))

        assert [True, True, True] == failures
        assert b"precious" == root.read_bytes()


class TestPlantedFiles:
    def test_a_link_in_place_of_a_threads_folder_is_not_followed(self, tmp_path: Path) -> None:
        """Neither reads nor writes leave the root, and a delete takes the link, not what it points to."""
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / DIGEST[7:]).write_bytes(b"precious")
        root = tmp_path / "blobs"
        root.mkdir()
        (root / "74").symlink_to(outside)
        blobs = FileSystemBlobStore(root)

        for call in (blobs.get("t", DIGEST), blobs.put("t", DIGEST, CONTENT)):
            with pytest.raises(StoreUnavailableError):
                asyncio.run(call)
        asyncio.run(blobs.delete_thread("t"))

        assert b"precious" == (outside / DIGEST[7:]).read_bytes()
        assert [] == list(root.iterdir())

    def test_a_link_in_place_of_a_blob_is_replaced_never_followed(self, tmp_path: Path) -> None:
        """What it points to is neither read nor written."""
        outside = tmp_path / "outside"
        outside.write_bytes(CONTENT)
        root = tmp_path / "blobs"
        (root / "74").mkdir(parents=True)
        (root / "74" / DIGEST[7:]).symlink_to(outside)
        blobs = FileSystemBlobStore(root)

        with pytest.raises(StoreUnavailableError):
            asyncio.run(blobs.get("t", DIGEST))
        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert not (root / "74" / DIGEST[7:]).is_symlink()
        assert CONTENT == asyncio.run(blobs.get("t", DIGEST))

    def test_a_link_inside_a_threads_folder_is_deleted_never_followed(self, tmp_path: Path) -> None:
        """Also one to a folder, and one inside a folder that is not ours."""
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "precious").write_bytes(b"precious")
        root = tmp_path / "blobs"
        (root / "74" / "deep").mkdir(parents=True)
        (root / "74" / "link").symlink_to(outside)
        (root / "74" / "deep" / "link").symlink_to(outside)

        asyncio.run(FileSystemBlobStore(root).delete_thread("t"))

        assert {"precious"} == files_below(outside)
        assert [] == list(root.iterdir())

    def test_a_pipe_in_place_of_a_blob_does_not_hang_the_reader(self, tmp_path: Path) -> None:
        """It is no blob, and putting the blob replaces it."""
        (tmp_path / "74").mkdir()
        os.mkfifo(tmp_path / "74" / DIGEST[7:])
        blobs = FileSystemBlobStore(tmp_path)

        with pytest.raises(StoreUnavailableError, match="not a regular file"):
            asyncio.run(blobs.get("t", DIGEST))
        asyncio.run(blobs.put("t", DIGEST, CONTENT))

        assert CONTENT == asyncio.run(blobs.get("t", DIGEST))

    def test_a_root_that_is_a_link_is_the_users_choice(self, tmp_path: Path) -> None:
        """The rule is about what lies below it."""
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")

        asyncio.run(FileSystemBlobStore(tmp_path / "link").put("t", DIGEST, CONTENT))

        assert {f"74/{DIGEST[7:]}"} == files_below(tmp_path / "real")

    def test_unfinished_files_go_with_their_thread(self, tmp_path: Path) -> None:
        """What a killed writer left is not found by reading, and is deleted with the rest."""
        blobs = FileSystemBlobStore(tmp_path)
        asyncio.run(blobs.put("t", DIGEST, CONTENT))
        (tmp_path / "74" / f".{DIGEST[7:]}.0011.tmp").write_bytes(CONTENT[:10])

        asyncio.run(blobs.delete_thread("t"))

        assert [] == list(tmp_path.iterdir())

    def test_a_file_that_appears_during_a_delete_may_stay_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A rival that puts faster than we delete does not keep us for ever."""
        blobs = FileSystemBlobStore(tmp_path)
        asyncio.run(blobs.put("t", DIGEST, CONTENT))
        passes = []
        real = os.rmdir

        def rmdir(path: str, *, dir_fd: int) -> None:
            passes.append(path)
            (tmp_path / "74" / f"{len(passes)}").write_bytes(b"new")
            real(path, dir_fd=dir_fd)

        monkeypatch.setattr(os, "rmdir", rmdir)
        asyncio.run(blobs.delete_thread("t"))

        assert _files._PASSES == len(passes)
        assert {f"74/{_files._PASSES}"} == files_below(tmp_path)
