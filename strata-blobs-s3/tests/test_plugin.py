"""The provider: from a URL to a store; and what an installation is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from importlib.resources import files

import pytest

from strata_blobs_s3 import S3BlobStore, S3Options
from strata_core import Offload, open_store
from strata_core.errors import InvalidInputError


def test_the_entry_point_names_the_scheme_and_leads_to_the_provider() -> None:
    (entry,) = entry_points(group="strata_core.blobs", name="s3")
    provider = entry.load().strata_blob_store()
    blobs = provider.open("s3://bucket/prefix?region=eu-north-1")

    assert ("s3", ("s3",), 1) == (provider.name, provider.schemes, provider.port_version)
    assert isinstance(blobs, S3BlobStore)
    assert ("s3://bucket/prefix", S3Options(region="eu-north-1")) == (blobs.url, blobs.options)


def test_a_url_that_is_wrong_is_told_as_the_argument_that_has_it() -> None:
    """That of `Offload`, as for a folder."""

    async def scenario() -> None:
        async with open_store("memory://", offload=Offload(blobs="s3://bucket?regoin=x")):
            pass

    with pytest.raises(InvalidInputError, match=r"no option 'regoin' \(did you mean 'region'\?\)") as caught:
        asyncio.run(scenario())
    assert "blobs" == caught.value.argument


def test_it_is_typed_and_carries_its_version() -> None:
    assert (files("strata_blobs_s3") / "py.typed").is_file()
    assert "0.1.0" == distribution("strata-blobs-s3").version


def test_importing_it_imports_neither_the_driver_nor_a_test_tool() -> None:
    code = "import sys, strata_blobs_s3; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    assert set() == {"boto3", "botocore", "pytest", "cattrs"} & set(loaded)
