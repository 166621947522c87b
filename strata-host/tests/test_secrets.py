"""A password in a URL is never shown."""

from __future__ import annotations

import pytest

URLS = [
    "nosuch://user:s3cr3t-pw@host/db",
    "nosuch://user:s3cr3t-pw/with@signs@host:notaport/db",
    "nosuch://:s3cr3t-pw@host",
    "nosuch://user@host/db?sslpassword=s3cr3t-pw&x=1",
    "nosuch://user:s3cr3t-pw",
    "no such://user:s3cr3t-pw@host",
]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("option", ["--storage", "--blobs"])
def test_not_when_nobody_serves_it(look, shelf, checkpoint, url, option):
    result = look("thread", "list", option, url, code=None)

    assert result.exit_code in {1, 2}
    assert "s3cr3t" not in result.output


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    "args",
    [
        ["{url}"],
        ["thread", "list", "--limit", "{url}"],
        ["thread", "list", "--status", "{url}"],
        ["thread", "list", "--cursor", "{url}"],
        ["thread", "list", "--meta={url}"],
        ["thread", "{url}"],
        ["thread", "list", "{url}"],
        ["checkpoint", "log", "{url}", "extra"],
    ],
    ids=" ".join,
)
def test_not_in_the_wrong_place(look, url, args):
    result = look(*(arg.format(url=url) for arg in args), code=None)

    assert "s3cr3t" not in result.stderr


def test_not_when_the_target_of_a_copy_raises_it(strata, shelf):
    """The variable of the target is one that a URL with a password is given in."""
    url = "broken://user:my%20s3cr3t@host/db"
    result = strata("copy", "--from", shelf.url, code=1, STRATA_TARGET=url)

    assert "RuntimeError" in result.stderr
    assert "s3cr3t" not in result.output


@pytest.mark.parametrize("debug", ["", "1"])
@pytest.mark.parametrize("variable", ["STRATA_STORAGE", "STRATA_TARGET"])
def test_not_when_a_plugin_raises_what_it_was_given(strata, shelf, variable, debug):
    url = "broken://user:s3cr3t%2Dpw@host/db"
    command = ("thread", "list") if variable == "STRATA_STORAGE" else ("copy", "--from", shelf.url)
    result = strata(*command, code=1, STRATA_DEBUG=debug, **{variable: url})

    assert "RuntimeError" in result.stderr
    assert "s3cr3t" not in result.output
    assert ("Traceback" in result.stderr) == bool(debug)
