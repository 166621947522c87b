"""Stores around stores, for tests: one records every call, one fails on a plan.

Both come at two layers: around the ports that an application calls, and around the row backend below core's store.
They forward everything, `capabilities` and batching included, so that the whole suite passes through them.
"""

from strata_conformance.stores._call import Call
from strata_conformance.stores._fault import Fault, UnfiredFaultError, When
from strata_conformance.stores._faulty import FaultyBackend, FaultyStore
from strata_conformance.stores._recording import RecordingBackend, RecordingStore

__all__ = [
    "Call",
    "Fault",
    "FaultyBackend",
    "FaultyStore",
    "RecordingBackend",
    "RecordingStore",
    "UnfiredFaultError",
    "When",
]
