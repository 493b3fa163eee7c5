"""``profrun improve`` on the programs: on those with a stall, and A/A experiments on those without."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs.improve.table import Program

from improving import known
from improving.slots import RunFailed, Slot, side_by_side

JOB = """name: {name}
command: {command}
workdir: {folder}
collectors: [none, torch]
resources: {{gpus: {gpus}, timeout: 5m}}
env: {env}
"""


@dataclass(frozen=True)
class Asked:
    """How ``profrun improve`` is called.

    Attributes:
        out: folder of the jobs, the runs and one document per program; and of ``known.json``.
        gpus: how many programs run side by side, each on its own GPU; 0: on the CPU, one after another.
        words: arguments of ``profrun improve`` for every program.
        real_words: further arguments for programs without a planted stall; they win over ``words``.
        remedy: try only the change that cures the stall, whatever else findings ask for.
        known: how often each version runs without profrun before profrun improves the program. Both use the
            same slot, because machines differ in speed.
        limit_s: seconds after which a call is killed.
        python: the Python that has torch and profrun.
        share: how many programs use a GPU in turns: while one measures, others start and are analysed.
    """

    out: Path
    gpus: int = 0
    words: tuple[str, ...] = ()
    remedy: bool = False
    known: int = 0
    limit_s: float = 1200.0
    python: str = sys.executable
    share: int = 1
    real_words: tuple[str, ...] = ()


def job_text(program: Program, asked: Asked) -> str:
    """The job spec of a program."""
    argv = program.argv("python3", on_gpu=asked.gpus > 0, in_turn=asked.share > 1)
    return JOB.format(
        name=program.name.replace("_", "-"),
        command=json.dumps(shlex.join(argv)),
        folder=json.dumps(str(program.path.parent)),
        gpus=program.ranks if asked.gpus else 0,
        env=json.dumps(dict(program.env)),
    )


def improved(program: Program, slot: Slot, asked: Asked) -> dict[str, Any]:
    """Improve one program; returns the document of ``--json``.

    Raises:
        RunFailed: the command failed, was killed, or printed no document.
    """
    job = asked.out / f"{program.name}.yaml"
    job.write_text(job_text(program, asked))
    argv = [
        asked.python,
        "-m",
        "profrun.cli",
        "improve",
        str(job),
        "--json",
        "--runs",
        str(asked.out / "runs"),
    ]
    argv += ["--only", program.change] if asked.remedy and program.change else []
    argv += [*asked.words, *(() if program.change else asked.real_words)]
    output = slot.run(argv, asked.out, {}, asked.limit_s)
    try:
        document: dict[str, Any] = json.loads(output)
    except ValueError as error:
        raise RunFailed(f"printed no document: {error}: {output[-500:]}") from None
    return document


def improve_all(programs: Sequence[Program], asked: Asked) -> int:
    """Improve programs, side by side where there are several GPUs; returns how many could not be."""
    failed: list[str] = []
    gains: list[known.Known] = []
    writing = threading.Lock()
    asked.out.mkdir(parents=True, exist_ok=True)
    without = known.Asked(asked.out / "known.json", asked.gpus, asked.known, python=asked.python)

    def one(program: Program, slot: Slot) -> None:
        if asked.known and program.change:
            gain = known.measured(program, slot, without)
            with writing:
                gains.append(gain)
                known.write(gains, without)
                print(gain.line(), flush=True)
        began = time.monotonic()
        try:
            document = improved(program, slot, asked)
        except RunFailed as error:
            with writing:
                failed.append(program.name)
                print(f"{program.name:24} {error}", flush=True)
            return
        (asked.out / f"{program.name}.json").write_text(json.dumps(document, indent=1) + "\n")
        with writing:
            print(line(program.name, document, time.monotonic() - began), flush=True)

    def refuse(program: Program) -> None:
        failed.append(program.name)
        print(f"{program.name:24} needs {program.ranks} GPUs", flush=True)

    side_by_side(programs, asked.gpus, one, refuse, asked.share)
    return len(failed)


def line(name: str, document: dict[str, Any], wall_s: float) -> str:
    """What one program gave, as the terminal has it."""
    words = []
    for one in document["experiments"]:
        gain = "" if one["ratio"] is None else f" {one['ratio'] - 1:+.1%}"
        rules = "+".join(promise["rule"] for promise in one["promises"])
        about = f"[{rules}] {one['same']['text']} {one['why']}"
        words.append(f"{one['name']}{gain} {one['state']} {about}".strip())
    together = document["together"]
    if together is not None:
        words.append(f"together: {together['ratio'] - 1:+.1%} {together['state']}")
    return f"{name:24} {wall_s:.0f} s\n    " + "\n    ".join(words)
