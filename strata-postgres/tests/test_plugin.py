"""The provider: from a URL to a backend."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from strata_core.errors import InvalidInputError
from strata_core.hookspecs import StoreProvider
from strata_core.options import StoreOptions
from strata_postgres import PostgresBackend, PostgresOptions
from strata_postgres._plugin import strata_checkpoint_store


@pytest.fixture
def provider() -> StoreProvider:
    return strata_checkpoint_store()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_the_entry_points_name_the_schemes_and_lead_to_the_provider(scheme: str) -> None:
    (entry,) = entry_points(group="strata_core.stores", name=scheme)
    provider = entry.load().strata_checkpoint_store()

    assert ("postgres", ("postgres", "postgresql"), 1, PostgresOptions) == (
        provider.name,
        provider.schemes,
        provider.port_version,
        provider.options_class,
    )


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "POSTGRES"])
def test_a_url_of_either_scheme_gives_a_backend_that_is_not_open(provider: StoreProvider, scheme: str) -> None:
    backend = provider.open(f"{scheme}://app:secret@h1:5432,h2:5433/db?target_session_attrs=read-write", StoreOptions())

    assert isinstance(backend, PostgresBackend)
    assert "secret" not in repr(backend)


def test_options_reach_the_backend(provider: StoreProvider) -> None:
    options = PostgresOptions(schema="strata", max_connections=3)
    backend = provider.open("postgres://h/db", StoreOptions(backend=options))

    assert isinstance(backend, PostgresBackend)
    assert options == backend._address.options


def test_options_of_another_store_are_refused(provider: StoreProvider) -> None:
    with pytest.raises(InvalidInputError, match="options: must be PostgresOptions for a postgres: store, not dict"):
        provider.open("postgres://h/db", StoreOptions(backend={}))


def test_the_driver_is_imported_when_a_store_is_opened_and_not_before() -> None:
    program = (
        "import sys; from strata_postgres._plugin import strata_checkpoint_store as hook; provider = hook();"
        "from strata_core.options import StoreOptions; before = {'psycopg', 'psycopg_pool'} & set(sys.modules);"
        "provider.open('postgres://h/db', StoreOptions()); print(sorted(before), 'psycopg' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)

    assert "[] True\n" == done.stdout


def test_the_package_offers_its_names_and_no_others() -> None:
    import strata_postgres

    assert all(hasattr(strata_postgres, name) for name in strata_postgres.__all__)
    assert not hasattr(strata_postgres, "Nothing")
