"""A proxy that stands between a client and a server, counts what passes, and does to it what networks do."""

from strata_conformance.servers.proxy._fault import At, UnfiredWireFaultError, WireFault
from strata_conformance.servers.proxy._proxy import FaultProxy
from strata_conformance.servers.proxy._record import Recording, Request

__all__ = ["At", "FaultProxy", "Recording", "Request", "UnfiredWireFaultError", "WireFault"]
