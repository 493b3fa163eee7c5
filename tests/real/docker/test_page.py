"""The how-to about containers, followed on a real engine, with our image on the stand-in base."""

from __future__ import annotations

import shlex

import pytest

from tests.conftest import ROOT
from tests.real.docker.conftest import Cli, own
from tests.support.pages import lay_out, missing_lines, read_page

pytestmark = [pytest.mark.docker, pytest.mark.pages, pytest.mark.timeout(600)]


def test_the_page_can_be_followed(cli: Cli, cuda: str) -> None:
    page = read_page(ROOT / "docs/how-to/containers.md")
    (cli.folder / "data").mkdir()
    for path in (*lay_out(page, cli.folder), cli.folder / "data"):
        own(path)
    lines = [(commands, line) for commands in page.commands for line in commands.text.splitlines()]
    called = [(commands, shlex.split(line)[1:]) for commands, line in lines if line.startswith("profrun ")]
    assert [words[0] for _, words in called] == ["images", "submit", "submit"]
    for commands, words in called[1:]:  # the image is built by the fixture, on the stand-in base
        done = cli.run(*words)
        assert done.returncode in commands.exits, done.stderr
        for output in commands.outputs:
            assert missing_lines(output.text, done.stdout, exact=False) == [], done.stdout
    assert (cli.only_run() / "report.html").exists()
