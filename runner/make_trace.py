"""The trace of a trial, made by a process of its own: ``python -m profrun.runner.make_trace RUN TRIAL``.

The process calls ``trial_files.normalise``, as the driver does, so that the trace is the same. It prints one
line of JSON. A backend says where it runs (``Backend.trace_words``).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from profrun.runner.trial_files import Normalised, normalise
from profrun.store.runs import Run
from profrun.store.state import TrialRecord, read_trial

_TICK_S = 0.5


def trace_command(words: Sequence[str], run: Run, trial: str) -> list[str]:
    """What makes the trace of a trial elsewhere.

    Args:
        words: go before the command of this Python.
    """
    return [*words, sys.executable, "-m", "profrun.runner.make_trace", str(run.path.absolute()), trial]


def made_elsewhere(
    words: Sequence[str], run: Run, record: TrialRecord, tick: Callable[[], None]
) -> Normalised | str:
    """Have the trace made by another process; its answer, or one line that says why there is none.

    Args:
        words: as of ``trace_command``.
        tick: is called twice a second meanwhile.

    Raises:
        KeyboardInterrupt: by a signal handler; the process is ended then.
    """
    try:
        process = subprocess.Popen(
            trace_command(words, run, record.id), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        return f"{words[0]} cannot be started: {error.strerror}"
    with process:
        try:
            out, err = _read(process, tick)
        except BaseException:
            process.terminate()
            raise
    lines = out.splitlines()
    if process.returncode == 0 and lines:
        told = json.loads(lines[-1])
        trace = record.paths.trace if told["made"] else None
        if trace is None or (trace / "meta.json").is_file():
            return Normalised(trace, told["error"], float(told["seconds"]), bool(told["full"]))
        return "what it made is not seen here"
    said = [line for line in err.splitlines() if line.strip()]
    return said[-1] if said else f"it ended with exit code {process.returncode}"


def _read(process: subprocess.Popen[str], tick: Callable[[], None]) -> tuple[str, str]:
    """What a process prints until its end."""
    while True:
        try:
            return process.communicate(timeout=_TICK_S)
        except subprocess.TimeoutExpired:
            tick()


def main(argv: Sequence[str]) -> int:
    """Make the trace of one trial, and print what became of it.

    It is made under a name that no other process uses: a driver that was killed may have left one behind that
    still works when the next driver starts another.

    Args:
        argv: the run's folder and the trial's id.
    """
    run = Run(Path(argv[0]))
    record = read_trial(run, argv[1])
    own = record.paths.trace.with_name(f"trace.{socket.gethostname()}.{os.getpid()}")
    done = normalise(run, record, out=own)
    if done.trace is not None:
        try:
            own.rename(record.paths.trace)
        except OSError:
            shutil.rmtree(own)
            if not (record.paths.trace / "meta.json").is_file():
                raise
    made = done.trace is not None
    print(json.dumps({"made": made, "error": done.error, "seconds": done.seconds, "full": done.full}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
