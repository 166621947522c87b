"""The provider: from a URL to a backend."""

import asyncio
import os
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from importlib.resources import files

import pytest
from redis_support import Place

from strata_core import open_store
from strata_core.errors import InvalidInputError
from strata_core.hookspecs import StoreProvider
from strata_core.options import StoreOptions
from strata_redis import RedisBackend, RedisOptions
from strata_redis._plugin import strata_checkpoint_store


@pytest.fixture
def provider() -> StoreProvider:
    return strata_checkpoint_store()


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_the_entry_points_name_the_schemes_and_lead_to_the_provider(scheme: str) -> None:
    (entry,) = entry_points(group="strata_core.stores", name=scheme)
    provider = entry.load().strata_checkpoint_store()

    assert ("redis", ("redis", "rediss"), 1, RedisOptions) == (
        provider.name,
        provider.schemes,
        provider.port_version,
        provider.options_class,
    )


def test_options_reach_the_backend(provider: StoreProvider) -> None:
    options = RedisOptions(prefix="orders")
    backend = provider.open("redis://host", StoreOptions(backend=options))

    assert isinstance(backend, RedisBackend)
    assert options == backend._options


def test_options_of_another_store_are_refused(provider: StoreProvider) -> None:
    with pytest.raises(InvalidInputError, match="options: must be RedisOptions for a redis: store, not dict"):
        provider.open("redis://host", StoreOptions(backend={}))


def test_a_store_is_opened_by_its_url(place: Place) -> None:
    async def check() -> None:
        async with open_store(place.url) as store:
            assert await store.load("t") is None
        async with open_store(place.url, read_only=True, options=RedisOptions(pool_size=1)) as store:
            assert await store.load("t") is None

    asyncio.run(check())


def test_what_opens_connections_is_imported_when_a_store_is_opened_and_not_before() -> None:
    program = (
        "import sys; from strata_redis._plugin import strata_checkpoint_store as hook; provider = hook();"
        "from strata_core.options import StoreOptions; before = 'strata_redis._connection' in sys.modules;"
        "provider.open('redis://host', StoreOptions()); print(before, 'strata_redis._connection' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)

    assert "False True\n" == done.stdout


def test_the_package_offers_its_names_and_no_others() -> None:
    import strata_redis

    assert all(hasattr(strata_redis, name) for name in strata_redis.__all__)
    assert not hasattr(strata_redis, "Nothing")


def test_the_scripts_and_the_types_come_with_the_package() -> None:
    package = files("strata_redis")

    assert (package / "py.typed").is_file()
    assert {"commit.lua", "heads.lua", "index.lua", "rows.lua", "set_up.lua", "sweep.lua", "walk.lua"} == {
        path.name for path in (package / "lua").iterdir()
    }
    assert {"0.1.0"} == {distribution("strata-redis").version}
