"""A program that is asked to end leaves in its own way, and is not cut by a second request."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, signal, sys
from profrun.in_job.exits import Exits

Exits(lambda: None, lambda kind, error: None, lambda: False, unwind=True)

def term():
    os.kill(os.getpid(), signal.SIGTERM)

def save():
    term()  # the second request comes while the program saves
    print("saved", flush=True)

class Last:  # deleted while Python takes itself apart
    kill, write, pid, number = os.kill, os.write, os.getpid(), signal.SIGTERM
    def __del__(self):
        self.kill(self.pid, self.number)
        self.write(1, b"saved")

"""


def ended(body: str) -> tuple[list[str], int]:
    """What the program printed, and its return code."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + body], capture_output=True, text=True, timeout=60, check=False
    )
    assert not done.stderr, done.stderr
    return done.stdout.split(), done.returncode


@pytest.mark.parametrize(
    "body",
    [
        "atexit.register(save); term()",
        "try:\n    term()\nfinally:\n    save()",
        "sys.last = Last(); term()",
        "try:\n    term()\nfinally:\n    try: 1 / 0\n    except ZeroDivisionError: save()",
    ],
    ids=["at exit", "finally", "after the exit", "an error while it leaves"],
)
def test_a_second_request_does_not_cut_what_a_leaving_program_does(body: str) -> None:
    printed, code = ended(body)
    assert (printed, code) == (["saved"], 128 + signal.SIGTERM)


def test_a_program_that_caught_the_first_request_dies_of_the_second() -> None:
    caught = "try:\n    term()\nexcept:\n    print('caught', flush=True)\nterm()\nprint('went on')"
    assert ended(caught) == (["caught"], -signal.SIGTERM)
