"""The README is true: its example runs, and its tables name what is there."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import fields
from s3_support import Place

from strata_blobs_s3 import S3Options

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_runs(
    moto: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (url,) = re.findall(r'"(s3://[^"]*)"', example)
    exec(example.replace(url, moto.url("strata", "&region=eu-north-1")), {})

    assert "None\n" == capsys.readouterr().out


def test_every_option_has_a_row_and_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", README, re.MULTILINE))
    defaults = {field.name: field.default for field in fields(S3Options)}

    assert list(defaults) == list(rows)
    assert ("5 seconds", "20 seconds", "3", "10") == tuple(
        rows[name] for name in ("connect_timeout", "read_timeout", "max_attempts", "max_connections")
    )
    assert (timedelta(seconds=5), timedelta(seconds=20), 3, 10) == tuple(
        defaults[name] for name in ("connect_timeout", "read_timeout", "max_attempts", "max_connections")
    )
