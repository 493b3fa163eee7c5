"""The how-to about Slurm, followed on a real Slurm from its first command to its last."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import ROOT
from tests.real.slurm.conftest import Desk, wait_for
from tests.support.pages import lay_out, missing_lines, read_page

pytestmark = [pytest.mark.slurm, pytest.mark.pages, pytest.mark.timeout(900)]


def test_the_page_can_be_followed(desk: Desk) -> None:
    page = read_page(ROOT / "docs/how-to/slurm.md")
    lay_out(page, desk.folder)
    assert sum(commands.needs == "slurm" for commands in page.commands) == 3
    for commands in page.commands:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands.text],
            cwd=desk.folder,
            env=dict(desk.cluster.environ),
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode in commands.exits, done.stdout + done.stderr
        for output in commands.outputs:
            assert missing_lines(output.text, done.stdout, exact=False) == [], done.stdout
    wait_for(lambda: (desk.run_folder() / "report.html").exists())
    assert ": finished" in desk.profrun("status", "last").stdout
