"""Puts very many threads into a server at once, as the commits of a store would have left them."""

import random
import socket
from collections.abc import Iterator

from redis_support import Place

from strata_core.rows import NewRow
from strata_redis._heads import HEAD, RECORD, facts_of
from strata_redis._keys import moment
from strata_redis._resp import pack

STATES = {"running": 1, "interrupted": 10, "completed": 80, "ended": 5, "failed": 4}
"""How often, in a hundred threads."""
SECOND = 1_000_000
WRITE_ID = bytes(range(1, 9))
RECORD_OF = (
    b'1.7.0 {"schema_version":"1.7.0","thread_id":"%b","status":"%b","created_at":"2026-10-30T14:49:52.000000Z"}'
)


class Bulk:
    """Threads whose facts follow from their numbers.

    Thread n was updated n seconds after 1970; every thousandth is due then, every third in far future; a hundred
    tenants and five graphs take turns; every 20,000th is rare.
    """

    def __init__(self, count: int) -> None:
        rng = random.Random(1)
        self.states = rng.choices(list(STATES), list(STATES.values()), k=count)
        self.count = count

    def facts(self, number: int) -> tuple[str, int, int | None, str, str, dict[str, str]]:
        """Return state, updated, due, graph, version and metadata."""
        due = number * SECOND if number % 1000 == 0 else 2**52 if number % 3 == 0 else None
        metadata = {"tenant": f"t{number % 100}", "rare": "yes" if number % 20_000 == 0 else "no"}
        return self.states[number], number * SECOND, due, f"g{number % 5}", str(number % 2), metadata

    def put(self, place: Place) -> None:
        """Put them in; the place has been set up."""
        (server,) = place.servers
        keys = place.keys
        members: dict[int, list[bytes]] = {}
        commands: list[tuple[bytes, ...]] = []
        for number in range(self.count):
            state, updated, due, graph, version, metadata = self.facts(number)
            name = f"t{number}"
            bucket = keys.bucket(name.encode())
            row = NewRow("1.7.0", True, b"", b"", state, state, updated, due, graph, version, metadata)
            record = RECORD.pack(0, WRITE_ID) + RECORD_OF % (name.encode(), state.encode())
            commands.append(
                (
                    b"HSET",
                    keys.thread(bucket, name.encode()),
                    b"head",
                    HEAD.pack(0, 0, 0, 0, 0, 0, bytes(8), moment(updated).encode(), 8) + WRITE_ID + bytes(4),
                    b"facts",
                    facts_of(row)[0],
                    b"r0",
                    record,
                    b"s0",
                    b"{}",
                )
            )
            members.setdefault(bucket, []).extend(_members(row, name))
        for bucket, found in members.items():
            for at in range(0, len(found), 2000):
                scored = [part for member in found[at : at + 2000] for part in (b"0", member)]
                commands.append((b"ZADD", keys.tags[bucket] + b"index", *scored))
        with socket.create_connection((server.host, server.port)) as connection:  # type: ignore[attr-defined]
            for at in range(0, len(commands), 1000):
                part = commands[at : at + 1000]
                connection.sendall(pack(part))
                lines = 0
                while lines < len(part):
                    lines += connection.recv(1 << 16).count(b"\n")


def _members(row: NewRow, name: str) -> Iterator[bytes]:
    when = moment(row.updated)
    place = (when[:11] + "00000" if row.state == "running" else when) + name
    yield f"a{place}".encode()
    yield f"s{row.state}\0{place}".encode()
    if row.due is not None:
        yield f"d{moment(row.due)}{place}".encode()
    yield f"g{row.graph_id}\0{place}".encode()
    yield f"v{row.graph_id}\0{row.graph_version}\0{place}".encode()
    for key, value in row.metadata.items():
        yield f"m{key}\0{value}\0{place}".encode()
