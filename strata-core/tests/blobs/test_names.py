"""How threads and blobs are named outside a database, there and back."""

from __future__ import annotations

import pytest

from strata_core.blobs import blob_file, digest_of_file, is_thread_folder, thread_folder, thread_of_folder


@pytest.mark.parametrize("thread", ["order-1", "\u00e9", "/../", "x" * 127])
def test_a_spelled_folder_tells_its_thread(thread: str) -> None:
    assert thread == thread_of_folder(thread_folder(thread))


def test_a_hashed_folder_is_known_as_one_and_tells_nothing() -> None:
    folder = thread_folder("x" * 128)

    assert is_thread_folder(folder)
    assert thread_of_folder(folder) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "readme",
        "7",
        "74 ",
        "7 4",
        "4F",
        "ff",
        "00",
        "sha256-",
        "sha256-" + "A" * 64,
        b"x".hex() * 128,
        "74\n",
        "\u0667\u0664",
    ],
)
def test_any_other_name_is_no_threads_folder(name: str) -> None:
    assert not is_thread_folder(name)
    with pytest.raises(ValueError):  # noqa: PT011  # whatever decoding says
        thread_of_folder(name)


def test_a_file_name_is_a_digest_and_nothing_else_is() -> None:
    digest = "sha256:" + "0a" * 32

    assert digest == digest_of_file(blob_file(digest))
    assert [None] * 4 == [digest_of_file(name) for name in ("", "0a", "0A" * 32, "0a" * 32 + ".tmp")]
