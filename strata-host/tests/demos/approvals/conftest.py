"""The FastAPI example, served to tests."""

from __future__ import annotations

import importlib
import time
from contextlib import contextmanager
from typing import ClassVar

import pytest
from starlette.testclient import TestClient


class Client(TestClient):
    """Somebody who submits and answers transfers."""

    ann: ClassVar = {"X-Forwarded-User": "ann@acme.io"}

    def submit(self, transfer_id="acme", amount="4200.50"):
        return self.post("/transfers", json={"id": transfer_id, "beneficiary": "Acme Corp", "amount": amount})

    def answer(self, transfer_id="acme", approve=True, headers=ann, **overrides):
        body = {"approve": approve, "overrides": overrides}
        return self.post(f"/transfers/{transfer_id}/answer", json=body, headers=headers)


@pytest.fixture
def folder(demo, monkeypatch):
    found = demo("fastapi-approvals")
    monkeypatch.syspath_prepend(str(found.folder))
    return found


@pytest.fixture
def service(folder):
    return importlib.import_module("service")


@pytest.fixture
def payments(folder):
    return importlib.import_module("payments")


@pytest.fixture
def problems(folder):
    return importlib.import_module("problems")


@pytest.fixture
def readme(folder):
    return (folder.folder / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def bank(payments):
    return payments.Bank()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "transfers.db"


@pytest.fixture
def serve(service, bank, file):
    """Serve the file, once or several times at the same time; each is a replica with a store and a loop of its own."""

    @contextmanager
    def started(storage=file):
        with Client(service.create_app(storage, bank)) as client:
            yield client

    return started


@pytest.fixture
def client(serve):
    with serve() as client:
        yield client


@pytest.fixture
def refusal():
    """What a response says of a request that was refused."""
    return lambda response: (response.status_code, response.json()["detail"]["code"])


@pytest.fixture
def wait_until():
    def wait_until(holds):
        for _ in range(1000):
            if holds():
                return
            time.sleep(0.02)
        pytest.fail("it has not come in 20 seconds")

    return wait_until
