"""Standard streams that were closed before profrun started, as cron and daemons have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.cli.streams import open_closed
from tests.cli.programs import STEPS, last_run, wait_until, write_job
from tests.cli.running import program
from tests.conftest import first


def shell(here: Path, line: str) -> int:
    """Carry out a line of a shell with ``$P`` as profrun; its exit code."""
    env = {**os.environ, "P": f"{sys.executable} -m profrun.cli"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return subprocess.run(["sh", "-c", line], cwd=here, env=env | {"PATH": path}, check=False).returncode


@pytest.mark.parametrize("closed", first(1, [">&- 2>&- <&-", ">&-", "2>&-", ">&- 2>&-", "<&-"]))
def test_a_run_with_closed_streams_ends_as_any_other(tmp_path: Path, closed: str) -> None:
    write_job(tmp_path, STEPS)
    assert shell(tmp_path, f"$P submit job.yaml {closed}") == 0
    found = program("status", "--json", cwd=tmp_path).json
    assert [trial["state"] for trial in found["trials"]] == ["finished"]


@pytest.mark.thorough
def test_a_detached_run_with_closed_streams_ends_as_any_other(tmp_path: Path) -> None:
    write_job(tmp_path, STEPS)
    assert shell(tmp_path, "$P submit job.yaml --detach >&- 2>&- <&-") == 0
    wait_until(lambda: program("status", "--json", cwd=tmp_path).json["state"] == "finished")
    wait_until(last_run(tmp_path).path.joinpath("report.html").exists)  # it is made after the run's end


def test_nothing_is_printed_into_a_file_that_got_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    check = (
        "import sys; from profrun.cli.streams import open_closed; open_closed();"
        "file = open('file', 'w'); print('out'); print('err', file=sys.stderr);"
        "sys.stdout.flush(); sys.exit(10 * (file.fileno() > 2) + len(sys.stdin.read()))"
    )
    (tmp_path / "check.py").write_text(check)
    assert shell(tmp_path, f"{sys.executable} check.py >&- 2>&- <&-") == 10
    assert (tmp_path / "file").read_text() == ""


def test_open_streams_stay_as_they_are() -> None:
    before = (sys.stdin, sys.stdout, sys.stderr)
    open_closed()
    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_a_path_in_another_alphabet_is_printed_under_lc_all_c(tmp_path: Path) -> None:
    (tmp_path / "ü.json").write_text("{}")
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = program("normalize", "ü.json", "-o", "t", cwd=tmp_path, env=env)
    assert (done.code, len(done.err.splitlines())) == (65, 1), done.err
