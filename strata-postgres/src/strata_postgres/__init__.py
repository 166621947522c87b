"""A checkpoint store on PostgreSQL for Strata.  Planned: there is nothing here yet; README.md says what to use meanwhile."""

from importlib.metadata import version

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        return version("strata-postgres")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
