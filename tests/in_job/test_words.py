"""in_job.words: what cannot be told stops nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from profrun.in_job.words import complain

TELLS = "from profrun.in_job.words import complain; complain('exit.json cannot be written'); print('goes on')"


def test_a_line_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    complain("exit.json cannot be written")
    print("goes on")
    assert capfd.readouterr() == ("goes on\n", "profrun: exit.json cannot be written\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_stderr_that_cannot_be_written_is_no_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", TELLS], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert done.stdout == "goes on\n"
    assert done.returncode in (0, 120)  # 120: Python itself could not flush stderr at its end
