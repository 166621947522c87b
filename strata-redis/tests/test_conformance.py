"""Redis and Valkey keep every promise of the contract, alone and in a cluster.

Valkey is judged by all of it, in whole stores too.  Redis runs what is required of a store: saves, leases, records, the
log, retention, and random commits and listings against the rule book.  A cluster of one node, which refuses whatever a
larger one would refuse, runs what reaches the server in another way.
"""

import functools
from datetime import timedelta

import pytest
from redis_support import Place

from strata_conformance import (
    CheckpointStoreTests,
    ConditionalSaveTests,
    Footprint,
    LeasedSaveTests,
    LeaseTests,
    LogTests,
    OpenBackend,
    OpenExpiringBackend,
    OpenStore,
    QueryTests,
    RecordTests,
    Reference,
    RepeatTests,
    RetentionTests,
    RowBackendTests,
    RowLeaseTests,
    RowLifecycleTests,
    RowPrimitiveTests,
    RuleBookTests,
)
from strata_core.store import RowStore
from strata_redis import RedisBackend, RedisOptions


class TestValkey(RowBackendTests):
    @pytest.fixture
    def open_backend(self, valkey: Place) -> OpenBackend:
        return lambda: RedisBackend(valkey.url)

    @pytest.fixture
    def open_expiring_backend(self, valkey: Place) -> OpenExpiringBackend:
        return lambda ttl: RedisBackend(valkey.url, options=RedisOptions(finished_thread_ttl=ttl))

    @pytest.fixture
    def reference(self, valkey: Place) -> Reference:
        return functools.partial(RedisBackend, valkey.url)

    @pytest.fixture
    def footprint(self, valkey: Place) -> Footprint:
        return valkey.footprint


class Partly(RowPrimitiveTests, RuleBookTests, LeaseTests, QueryTests, RetentionTests):
    """What depends on the server."""

    @pytest.fixture
    def open_store(self, open_backend: OpenBackend) -> OpenStore:
        return lambda **options: RowStore(open_backend(), **options)


class TestRedis(
    Partly,
    CheckpointStoreTests,
    ConditionalSaveTests,
    RepeatTests,
    LeasedSaveTests,
    RecordTests,
    LogTests,
    RowLeaseTests,
    RowLifecycleTests,
):
    """All that is required of a store, but for what is judged before a server is asked."""

    @pytest.fixture
    def open_backend(self, redis: Place) -> OpenBackend:
        return lambda: RedisBackend(redis.url)

    @pytest.fixture
    def footprint(self, redis: Place) -> Footprint:
        return redis.footprint


class TestClusterOfOneNode(Partly):
    @pytest.fixture
    def open_backend(self, small_cluster: Place) -> OpenBackend:
        return lambda: RedisBackend(small_cluster.url)

    @pytest.fixture
    def footprint(self, small_cluster: Place) -> Footprint:
        return small_cluster.footprint


class TestValkeyThatLetsThreadsExpire(RuleBookTests, RetentionTests):
    """Threads that will expire in an hour are like all others until then."""

    @pytest.fixture(autouse=True)
    def _external_as_well(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Random commits name external blobs, which such a store refuses."""
        monkeypatch.setattr("strata_redis._backend.refuse_external", lambda batch: None)

    @pytest.fixture
    def open_backend(self, valkey: Place) -> OpenBackend:
        options = RedisOptions(finished_thread_ttl=timedelta(hours=1))
        return lambda: RedisBackend(valkey.url, options=options)

    @pytest.fixture
    def open_store(self, open_backend: OpenBackend) -> OpenStore:
        return lambda **options: RowStore(open_backend(), **options)

    @pytest.fixture
    def footprint(self, valkey: Place) -> Footprint:
        return valkey.footprint
