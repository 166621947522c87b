"""A checkpoint store on PostgreSQL for Strata.  Planned: nothing is here yet."""

from importlib.metadata import version

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        return version("strata-postgres")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
