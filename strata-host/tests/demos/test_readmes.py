"""What the README says of the demos."""

from __future__ import annotations

import re
from pathlib import Path

HOST = Path(__file__).parents[2]
README = (HOST / "README.md").read_text(encoding="utf-8")


def test_the_readme_lists_every_demo_with_a_link_that_leads_to_it():
    listed = re.findall(r"^\| \[`([\w-]+)`\]\((demos/([\w-]+)/[\w.]+)\) \|", README, re.MULTILINE)

    assert sorted(name for name, _, _ in listed) == sorted(path.name for path in (HOST / "demos").iterdir())
    for name, path, folder in listed:
        assert name == folder
        assert (HOST / path).is_file()
