"""One process with torch for all tests of changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Answer:
    """What a program has left.

    Attributes:
        out: the dictionary ``out`` of the program.
        findings: code and text of each finding.
        error: the traceback of a program that failed, else None.
    """

    out: dict[str, Any]
    findings: list[tuple[str, str]]
    error: str | None

    @property
    def only(self) -> tuple[str, str]:
        """The only finding."""
        assert self.error is None, self.error
        (found,) = self.findings
        return found


class Programs:
    """Runs programs with changes in real torch."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        # The answers have a pipe of their own, number 3 in the server.
        path = os.pathsep.join(folder for folder in sys.path if folder)
        command = f'exec 3>&{writing} {writing}>&-; exec "$0" -m tests.in_job.changes.server'
        self._process = subprocess.Popen(
            ["bash", "-c", command, sys.executable],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(writing,),
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": path,
            },
        )
        os.close(writing)
        self._answers = os.fdopen(reading)

    def run(self, *changes: str, code: str, before: str = "") -> Answer:
        """Run a program.

        Args:
            changes: as a job writes them.
            code: the program; ``torch`` is there, and ``out`` takes what is to be looked at.
            before: what runs before the changes are made: stand-ins for what this machine has not.
        """
        assert self._process.stdin is not None
        request = {"changes": changes, "code": code, "before": before}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._answers.readline())
        return Answer(answer["out"], [(code, text) for code, text in answer["findings"]], answer["error"])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._answers.close()


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    """Real torch on the CPU, with changes."""
    pytest.importorskip("torch")
    made = Programs()
    yield made
    made.close()
