"""Call the command line in this process, or as the real program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profrun.cli import run

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as one JSON document; anything beside it is an error."""
        return json.loads(self.out)


def call(capsys: Capture, *args: object) -> Done:
    """In this process."""
    capsys.readouterr()
    code = run([str(arg) for arg in args])
    found = capsys.readouterr()
    return Done(code, found.out, found.err)


def program(*args: object, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 240) -> Done:
    """As a process of its own."""
    with start(*args, cwd=cwd, env=env) as child:
        out, err = child.communicate(timeout=timeout)
    return Done(child.returncode, out, err)


def start(*args: object, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start ``profrun ARGS`` with this Python first on the PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.Popen(
        [sys.executable, "-m", "profrun.cli", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "PATH": path, "COLUMNS": "80", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
