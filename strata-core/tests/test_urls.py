"""What URLs mean, and that their secrets are never shown."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_core.errors import InvalidInputError
from strata_core.opening import open_store
from strata_core.urls import blob_url, database_path, folder_path, redact, scheme_of, scrub, store_url

SECRET = "hunter2secret"


class TestSchemes:
    @pytest.mark.parametrize(
        ("url", "scheme"),
        [
            ("sqlite:///orders.db", "sqlite"),
            ("SQLite:///orders.db", "sqlite"),
            ("postgresql+x.y-z://h", "postgresql+x.y-z"),
            ("file:blobs", "file"),
            ("memory:", "memory"),
            ("orders.db", None),
            ("./a:b", None),
            ("/srv/a:b", None),
            ("1a:b", None),
            ("a b:c", None),
            (":memory:", None),
            ("", None),
        ],
    )
    def test_a_scheme_is_what_stands_before_the_first_colon(self, url: str, scheme: str | None) -> None:
        """It is compared in lower case, and a path has none."""
        assert scheme == scheme_of(url)


class TestDatabasePaths:
    @pytest.mark.parametrize(
        ("url", "path"),
        [
            ("sqlite:///orders.db", "orders.db"),
            ("sqlite:///data/orders.db", "data/orders.db"),
            ("sqlite:///../orders.db", "../orders.db"),
            ("sqlite:////srv/orders.db", "/srv/orders.db"),
            ("SQLITE:///orders.db", "orders.db"),
            ("sqlite:///a%20b%3F%23%25.db", "a b?#%.db"),
            ("sqlite:///bücher.db", "bücher.db"),
            ("sqlite:///a@b:c.db", "a@b:c.db"),
        ],
    )
    def test_three_slashes_are_relative_and_four_absolute(self, url: str, path: str) -> None:
        """As in SQLAlchemy, with percent escapes decoded."""
        assert Path(path) == database_path(url)

    @pytest.mark.parametrize(
        "url",
        [
            "sqlite:",
            "sqlite://",
            "sqlite:///",
            "sqlite://orders.db",
            "sqlite://host/orders.db",
            "sqlite:orders.db",
            "sqlite:/orders.db",
            "sqlite:///a.db?mode=ro",
            "sqlite:///a.db#x",
            "sqlite:///a%00.db",
            "sqlite:///a%ff.db",
            "orders.db",
            "",
        ],
    )
    def test_a_url_without_a_file_is_refused(self, url: str) -> None:
        """The error names the argument and the way out."""
        with pytest.raises(InvalidInputError) as refused:
            database_path(url)

        assert "url" == refused.value.argument

    @pytest.mark.parametrize(
        ("given_path", "url"),
        [
            ("orders.db", "sqlite:///orders.db"),
            ("./orders.db", "sqlite:///./orders.db"),
            ("/srv/orders.db", "sqlite:////srv/orders.db"),
            (Path("orders.db"), "sqlite:///orders.db"),
            (Path("/srv/orders.db"), "sqlite:////srv/orders.db"),
            (Path("a:b.db"), "sqlite:///a%3Ab.db"),
            ("a b?#%.db", "sqlite:///a%20b%3F%23%25.db"),
        ],
    )
    def test_a_bare_path_means_sqlite(self, given_path: str | Path, url: str) -> None:
        """A `pathlib.Path` is always a path."""
        assert url == store_url(given_path)

    @given(
        st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/")), min_size=1).map(
            "/".join
        )
    )
    def test_every_path_survives(self, path: str) -> None:
        """Whatever its characters, the file that is opened is the one that was named."""
        if path.strip():
            assert Path(path) == database_path(store_url(Path(path)))
            assert Path(path) == folder_path(blob_url(Path(path)))

    def test_a_url_stays_as_it_is(self) -> None:
        """Only its provider knows what it means."""
        assert "postgres://u@h/db?x=%20" == store_url("postgres://u@h/db?x=%20")

    @pytest.mark.parametrize(
        "value",
        [None, 1, b"orders.db", "", "  ", "a\nb", "a\0b", "\ud800", "1pg://h", " pg://h", "//u:p@h", "password=x"],
    )
    def test_what_is_neither_is_refused(self, value: object) -> None:
        """At once, before anything is opened."""
        with pytest.raises(InvalidInputError) as refused:
            open_store(value)  # type: ignore[arg-type]

        assert "url" == refused.value.argument


class TestFolderPaths:
    @pytest.mark.parametrize(
        ("url", "path"),
        [
            ("file:blobs", "blobs"),
            ("file:./blobs", "blobs"),
            ("file:../blobs", "../blobs"),
            ("file:///var/blobs", "/var/blobs"),
            ("file:/var/blobs", "/var/blobs"),
            ("file://localhost/var/blobs", "/var/blobs"),
            ("FILE:a%20b%3F", "a b?"),
        ],
    )
    def test_a_file_url_names_a_folder(self, url: str, path: str) -> None:
        """Relative without slashes, absolute with."""
        assert Path(path) == folder_path(url)

    @pytest.mark.parametrize(
        "url", ["file:", "file://", "file://host/blobs", "file://blobs", "file:a?b", "file:a#b", "b"]
    )
    def test_a_url_without_a_folder_is_refused(self, url: str) -> None:
        """The error names the argument and the way out."""
        with pytest.raises(InvalidInputError) as refused:
            folder_path(url)

        assert "blobs" == refused.value.argument

    @pytest.mark.parametrize(
        ("folder", "url"),
        [
            ("blobs", "file:blobs"),
            ("/var/blobs", "file:///var/blobs"),
            (Path("/var/a b"), "file:///var/a%20b"),
            (Path("a:b"), "file:a%3Ab"),
            ("s3://bucket/prefix", "s3://bucket/prefix"),
            ("file:blobs", "file:blobs"),
        ],
    )
    def test_a_bare_folder_is_a_file_url(self, folder: str | Path, url: str) -> None:
        """People give the command a folder."""
        assert url == blob_url(folder)


class TestRedaction:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            (f"postgres://app:{SECRET}@db:5432/orders", "postgres://app:***@db:5432/orders"),
            (f"redis://:{SECRET}@cache/0", "redis://:***@cache/0"),
            (f"redis://{SECRET}@cache/0", "redis://***@cache/0"),
            (f"postgres:///orders?user=a&password={SECRET}&x=1", "postgres:///orders?user=a&password=***&x=1"),
            (f"postgres://h/db?sslmode=on&sslpassword={SECRET}", "postgres://h/db?sslmode=on&sslpassword=***"),
            (f"s3://bucket/p?aws_secret_access_key={SECRET}", "s3://bucket/p?aws_secret_access_key=***"),
            (f"x://h?API_KEY={SECRET}&Auth-Token={SECRET}", "x://h?API_KEY=***&Auth-Token=***"),
            (f"x://h?p%61ss%77ord={SECRET}", "x://h?p%61ss%77ord=***"),
            (f"x://h?p%2561ssword={SECRET}", "x://h?p%2561ssword=***"),
        ],
    )
    def test_secrets_are_hidden_and_the_rest_is_shown(self, url: str, shown: str) -> None:
        """Enough stays to tell which database is meant."""
        assert shown == redact(url)

    @pytest.mark.parametrize(
        "url",
        [
            "sqlite:///orders.db",
            "sqlite:////srv/a@b.db",
            "postgres://db/orders?sslmode=require",
            "postgres://h1:5432,h2:5432/orders",
            "postgres://[::1]:5432/orders",
            "redis://cache:6379/0",
            "memory://shared",
            "file:///var/blobs",
            "file:a@b",
            "s3://bucket/prefix",
            "./a@b.db",
            "orders.db",
            "",
        ],
    )
    def test_a_url_without_secrets_is_shown_as_it_is(self, url: str) -> None:
        """Nothing is hidden for nothing."""
        assert url == redact(url)

    @pytest.mark.parametrize(
        "url",
        [
            f"postgres://app:{SECRET}@h@ost/db",
            f"postgres://app:x@{SECRET}@host/db",
            f"postgres://app:x/{SECRET}@host/db",
            f"postgres://app:x?{SECRET}@host/db",
            f"postgres://app:x#{SECRET}@host/db",
            f"postgres://app:1/{SECRET}@host/db",
            f"postgres://app:{SECRET}",
            f"postgres://app:{SECRET}/db",
            f"postgres://[::1:{SECRET}@host",
            f"postgres://app:{SECRET}@[::1/db",
            f"postgres:app:{SECRET}@host/db",
            f"postgres:/app:{SECRET}@host/db",
            f"postgres:///app:{SECRET}@host/db",
            f"postgres:app:{SECRET}",
            f"app:{SECRET}@host/db",
            f"//app:{SECRET}@host/db",
            f" postgres://app:{SECRET}@host/db",
            f"1pg://app:{SECRET}@host/db",
            f"://app:{SECRET}@host/db",
            f"post gres://app:{SECRET}@host/db",
            f"host=h password={SECRET} dbname=x",
            f"password={SECRET}",
            f"postgres://h/db?password={SECRET};x=1",
            f"postgres://h/db?password=a b{SECRET}",
            f"postgres://h/db#password={SECRET}",
            f"postgres://h/db;password={SECRET}",
            f"postgres://h/db?x=y?password={SECRET}",
            f"sqlite://app:{SECRET}@host/db",
            f"sqlite:///x.db?password={SECRET}",
            f"file:x?token={SECRET}",
            f"postgres://app:{SECRET}@host:port/db?password={SECRET}",
            f"postgres://app:{SECRET}%zz@host/db",
        ],
    )
    def test_broken_urls_leak_nothing(self, url: str) -> None:
        """Where no parser can be trusted, rather too much is hidden; the errors of `open_store` keep to it."""
        assert SECRET not in redact(url)

        try:
            opened = repr(open_store(url))
        except InvalidInputError as error:
            opened = str(error)

        assert SECRET not in opened

    @given(
        st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=5),
        st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=5),
    )
    def test_no_password_leaks_whatever_stands_around_it(self, before: str, after: str) -> None:
        """Neither raw nor escaped, in userinfo or in a parameter."""
        password = before + SECRET + after
        urls = [
            f"postgres://app:{password}@host/db",
            f"postgres://app:{quote(password, safe='')}@host/db",
            f"postgres://host/db?password={quote(password, safe='')}&x=1",
        ]

        assert not [url for url in urls if SECRET in redact(url)]

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            (f"postgres://app:{SECRET}@h/db", f"no password {SECRET!r} for app"),
            (f"postgres://app:{SECRET}@h/db", f"cannot open postgres://app:{SECRET}@h/db"),
            ("postgres://app:hunter%32secret@h/db", f"no password {SECRET!r} for app"),
            ("postgres://h/db?password=hunter%32secret", f"no password {SECRET!r} for app"),
            (f"postgres://app:{SECRET}/db", f"invalid port {SECRET!r}"),
            (f"postgres:app:{SECRET}@h/db", f"bad {SECRET!r}"),
        ],
    )
    def test_a_drivers_message_is_scrubbed(self, url: str, said: str) -> None:
        """As written or unescaped, the secret goes and the words stay."""
        scrubbed = scrub(said, url)

        assert SECRET not in scrubbed
        assert said.partition(" ")[0] == scrubbed.partition(" ")[0]

    @pytest.mark.parametrize(
        ("url", "said", "shown"),
        [
            (
                "postgresql://postgres:postgres@h/postgres",
                "postgresql://postgres:postgres@h/postgres: no password 'postgres'",
                "postgresql://postgres:***@h/postgres: no password '***'",
            ),
            (
                "postgresql://postgres@h/db?sslmode=require",
                "postgresql://***@h/db (schema 'public'): no user 'postgres'",
                "postgresql://***@h/db (schema 'public'): no user '***'",
            ),
            ("redis://:redis@h/0", "redis://:***@h/0: refused redis", "redis://:***@h/0: refused ***"),
        ],
    )
    def test_a_secret_that_is_a_word_of_its_url_leaves_the_url_readable(self, url: str, said: str, shown: str) -> None:
        """What is the user's, the host's or the scheme's is shown anyway; the same word elsewhere is hidden."""
        assert shown == scrub(said, url)

    def test_a_message_without_secrets_stays_as_it_is(self) -> None:
        """Nothing is hidden for nothing."""
        assert "no route to h" == scrub("no route to h", f"postgres://app:{SECRET}@h/db")
