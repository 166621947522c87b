"""What goes wrong before a server is there."""

from __future__ import annotations

__all__ = ["MissingServerError", "ServerFailedError"]


class MissingServerError(Exception):
    """A server that a test needs is installed nowhere.

    Attributes:
        product: What is missing, such as ``PostgreSQL``.
    """

    def __init__(self, product: str, remedies: str) -> None:
        super().__init__(f"There is no {product} for the tests. {remedies}")
        self.product = product


class ServerFailedError(Exception):
    """A server was found and did not start, did not stop, or refused a statement; the text says why."""
