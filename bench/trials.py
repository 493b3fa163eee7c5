"""Run variants of a program again and again as trials without a profiler: ``python bench/trials.py OUT``.

Each trial runs under the wrapper of a job, so it leaves ``steps.json`` and the sampler's file, as a trial of
``profrun submit`` does. The variants take turns (A B A B ...). ``bench/recorded.py`` judges what it leaves.

    python bench/trials.py /tmp/aa --run "python loop.py" --label base= --label more="--extra 1"

With ``--overlap`` the next trial's program starts while the last one runs: on a machine with many cores that
hides the import of torch. The program itself must wait for its turn before it uses the GPU, as
``bench/programs/gemm_loop.py`` does.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from profrun.contract.codec import to_json
from profrun.contract.command import Command
from profrun.contract.schedule import Schedule
from profrun.plans.bundle import write_bundle

TURN = "PROFRUN_BENCH_TURN"
"""Variable of a trial: the file that holds the number of the trial whose turn it is, and its own number."""


def prepare(out: Path, number: int, label: str, argv: list[str], env: dict[str, str], rate: float) -> Path:
    """Make the folder of one trial."""
    folder = out / f"{number:04d}-{label}"
    folder.mkdir(parents=True)
    command = Command(
        trial=folder.name,
        run=out.name,
        job="trials",
        variant=label,
        collector="none",
        argv=tuple(argv),
        cwd=str(Path.cwd()),
        env=env,
        schedule=Schedule(wait=1, warmup=1, active=5),
        timeout_s=120.0,
        sample=rate,
    )
    (folder / "command.json").write_text(json.dumps(to_json(command)))
    return folder


def start(bundle: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start the wrapper of one trial."""
    argv = [sys.executable, str(bundle / "run.py"), str(folder)]
    with (folder / "wrapper.log").open("wb") as log:
        return subprocess.Popen(argv, stdout=log, stderr=log)


def main() -> int:
    """Run the trials one after another; returns how many failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--label", action="append", required=True, metavar="NAME=ARGUMENTS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rate", type=float, default=10.0, help="samples per second")
    parser.add_argument("--limit", type=float, default=1e9, help="start no trial after so many seconds")
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--run", required=True, metavar="COMMAND", help="the program and its arguments")
    args = parser.parse_args()
    command = shlex.split(args.run)
    bundle = args.out / "bundle"
    write_bundle(bundle)
    labels = [label.partition("=")[::2] for label in args.label]
    turn = args.out / "turn"
    turn.write_text("0")
    began, failed, number = time.monotonic(), 0, 0
    running: list[subprocess.Popen[bytes]] = []
    for repeat in range(args.repeats):
        for name, extra in labels:
            if time.monotonic() - began > args.limit:
                break
            env = {TURN: f"{turn}:{number}"} if args.overlap else {}
            argv = [*command, *shlex.split(extra.format(repeat=repeat, number=number))]
            running.append(start(bundle, prepare(args.out, number, name, argv, env, args.rate)))
            number += 1
            while len(running) > (1 if args.overlap else 0):
                failed += running.pop(0).wait() != 0
    failed += sum(process.wait() != 0 for process in running)
    print(f"{number} trials, {failed} failed, {time.monotonic() - began:.0f} s")
    return min(failed, 100)


if __name__ == "__main__":
    os.environ.pop(TURN, None)
    sys.exit(main())
