"""Runs torch programs one after another, each in a forked child of one process that has imported torch.

``python -m tests.support.forked_programs`` reads one command line per line (a JSON list: script, arguments)
and answers each with one line: a JSON list of its exit code, what it wrote on stdout, and on stderr.
Importing torch takes three seconds of CPU per program, and most programs of the tests take less themselves.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from tests.conftest import ROOT

LIMIT_S = 120
"""A program that hangs ends after so many seconds."""


def outputs(commands: Iterable[list[str]]) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each command line: script, arguments.

    Torch uses one thread, because threads wait for each other on a busy machine.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.forked_programs"],
        input="".join(f"{json.dumps(command)}\n" for command in commands),
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def _child(argv: list[str], out: int, err: int) -> NoReturn:
    """Be the program."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    signal.alarm(LIMIT_S)
    sys.argv = argv
    sys.path[0] = str(Path(argv[0]).parent)  # as where it is started by its name
    code = 0
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Answer until the end of the input."""
    import torch._dynamo  # noqa: F401  the first step of an optimizer would import it in each child

    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if not child:
                _child(json.loads(line), out.fileno(), err.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read())
            print(json.dumps([code, *said]), flush=True)


if __name__ == "__main__":
    main()
