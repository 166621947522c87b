"""The demo of the FastAPI example, as a user runs it."""

from __future__ import annotations

import re


class TestTheDemo:
    def test_the_command_of_the_readme_prints_what_the_readme_says(self, folder):
        def without_reference(text):
            return re.sub("TX-[0-9a-f]{6}", "TX-", text)

        assert without_reference(folder.readme("text")) == without_reference(folder.run().stdout)

    def test_it_fails_when_the_service_does_not_start(self, folder, shelf):
        done = folder.run("--storage", "nowhere://", code=1)

        assert "The service does not start" in done.stderr
        assert "nowhere" in done.stderr
