"""The provider: from a URL to a backend."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from strata_core.errors import InvalidInputError
from strata_core.hookspecs import StoreProvider
from strata_core.options import StoreOptions
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend, SqliteOptions
from strata_sqlite._plugin import strata_checkpoint_store


@pytest.fixture
def provider() -> StoreProvider:
    return strata_checkpoint_store()


def open_backend(provider: StoreProvider, url: str, options: StoreOptions | None = None) -> SqliteBackend:
    backend = provider.open(url, options or StoreOptions())
    assert isinstance(backend, SqliteBackend)
    return backend


def test_the_entry_point_names_the_scheme_and_leads_to_the_provider() -> None:
    (entry,) = entry_points(group="strata_core.stores", name="sqlite")
    provider = entry.load().strata_checkpoint_store()

    assert ("sqlite", ("sqlite",), 1, SqliteOptions) == (
        provider.name,
        provider.schemes,
        provider.port_version,
        provider.options_class,
    )


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///orders.db", "orders.db"),
        ("sqlite:///a/b/orders.db", "a/b/orders.db"),
        ("sqlite:////srv/orders.db", "/srv/orders.db"),
        ("sqlite:///a%20b%23%3F%25.db", "a b#?%.db"),
        ("sqlite:///%E6%97%A5%E6%9C%AC.db", "日本.db"),
        ("sqlite:///日本.db", "日本.db"),
    ],
)
def test_a_url_names_a_path(provider: StoreProvider, url: str, path: str) -> None:
    assert f"SqliteBackend({path!r})" == repr(open_backend(provider, url))


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite://host/orders.db",
        "sqlite://user:pw@host/orders.db",
        "sqlite:///orders.db?mode=ro",
        "sqlite:///orders.db#part",
        "sqlite:///a%00b.db",
        "sqlite:///:memory:",
    ],
)
def test_a_url_that_names_no_file_is_refused(provider: StoreProvider, url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        open_backend(provider, url)

    assert "pw" not in str(caught.value)


def test_options_and_clock_reach_the_backend(provider: StoreProvider, tmp_path: Path) -> None:
    options, clock = SqliteOptions(synchronous="NORMAL"), FakeClock()
    backend = open_backend(provider, f"sqlite:///{tmp_path}/a.db", StoreOptions(clock=clock, backend=options))

    assert (options, clock) == (backend._options, backend._clock)


def test_options_of_another_store_are_refused(provider: StoreProvider) -> None:
    with pytest.raises(InvalidInputError, match="options: must be SqliteOptions for a sqlite: store, not dict"):
        open_backend(provider, "sqlite:///a.db", StoreOptions(backend={}))


def test_the_driver_is_imported_when_a_store_is_opened_and_not_before() -> None:
    program = (
        "import sys; from strata_sqlite._plugin import strata_checkpoint_store as hook; provider = hook();"
        "from strata_core.options import StoreOptions; before = {'aiosqlite', 'sqlite3'} & set(sys.modules);"
        "provider.open('sqlite:///a.db', StoreOptions()); print(sorted(before), 'aiosqlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)

    assert "[] True\n" == done.stdout


def test_the_package_offers_its_names_and_no_others() -> None:
    import strata_sqlite

    assert all(hasattr(strata_sqlite, name) for name in strata_sqlite.__all__)
    assert not hasattr(strata_sqlite, "Nothing")
