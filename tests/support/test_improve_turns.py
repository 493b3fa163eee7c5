"""Programs that share a GPU in turns: which slots there are, and that one waits for the other."""

from __future__ import annotations

import fcntl
import importlib
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from bench.programs.improve.table import HERE, PROGRAMS, REAL

from tests.conftest import ROOT, missing

BY_NAME = {program.name: program for program in REAL}


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The module, which imports its neighbours as a script of bench does, on a machine of 16 cores."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    module = importlib.import_module("improving.slots")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(16)))
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
    return module


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((0, 1, 3), [("", 16, None)]),  # without a GPU nothing is shared
        ((1, 1, 1), [("0", 16, None)]),
        ((2, 1, 1), [("0", 8, None), ("1", 8, None)]),
        ((2, 1, 2), [("0", 4, "gpu0"), ("0", 4, "gpu0"), ("1", 4, "gpu1"), ("1", 4, "gpu1")]),
        ((1, 1, 3), [("0", 4, "gpu0")] * 3),  # 5 cores each would split a core with two threads
        ((2, 2, 3), [("0,1", 16, None)]),  # ranks wait for each other, not for turns
        ((1, 2, 3), []),
    ],
)
def test_slots(slots: Any, asked: tuple[int, int, int], expected: list[tuple[str, int, str | None]]) -> None:
    made = slots.slots(*asked)
    seen = [one.environ({}) for one in made]
    assert [
        (env["CUDA_VISIBLE_DEVICES"], len(one.cores), one.turn.name if one.turn else None)
        for env, one in zip(seen, made, strict=True)
    ] == expected
    told = [env.get("BENCH_TURN") for env in seen]
    assert told == [str(one.turn) if one.turn else None for one in made]
    assert sum(len(one.cores) for one in made) == len(frozenset().union(*(one.cores for one in made)))


def test_a_program_that_knows_no_turns_is_started_by_one_that_does() -> None:
    gan = BY_NAME["gan"]
    assert gan.argv("python3", on_gpu=True, in_turn=True) == [
        "python3", str(HERE / "in_turn.py"), "torch", str(gan.path), "--steps", "200",
    ]  # fmt: skip
    assert BY_NAME["hf_trainer"].argv("p", on_gpu=False, in_turn=True)[2].startswith("torch,transformers.")
    for program in (PROGRAMS["slow_loader"], BY_NAME["ddp"]):
        assert program.argv("p", on_gpu=True, in_turn=True) == program.argv("p", on_gpu=True)


def test_planted_and_real_programs_in_one_queue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program with a planted stall is asked for its remedy, a real one for all that findings advise."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    stages = importlib.import_module("improving.stages")
    called: list[list[str]] = []

    class Slot:
        def run(self, argv: list[str], *_rest: object) -> str:
            called.append(argv[argv.index("--runs") + 2 :])
            return "{}"

    asked = stages.Asked(tmp_path, 4, ("--budget", "40m"), remedy=True, real_words=("--budget", "9m"))
    for program in (PROGRAMS["slow_loader"], BY_NAME["gan"]):
        stages.improved(program, Slot(), asked)
    assert called == [
        ["--only", PROGRAMS["slow_loader"].change, "--budget", "40m"],
        ["--budget", "40m", "--budget", "9m"],
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["clean_cpu_256", "gan"])
def test_a_program_waits_for_its_turn(name: str, tmp_path: Path) -> None:
    """It has imported torch by then, and it ends its turn when it ends."""
    if find_spec("torch") is None:
        missing("torch")
    turn = tmp_path / "gpu0"
    program = {**PROGRAMS, **BY_NAME}[name]
    argv = program.argv(sys.executable, on_gpu=False, steps=3, in_turn=True)
    with turn.open("w") as ours:
        fcntl.flock(ours, fcntl.LOCK_EX)
        process = subprocess.Popen(argv, cwd=program.path.parent, env={**os.environ, "BENCH_TURN": str(turn)})
        try:
            while not any(
                file.samefile(turn) for file in Path(f"/proc/{process.pid}/fd").iterdir() if file.exists()
            ):
                assert process.poll() is None
                time.sleep(0.1)
            time.sleep(1)
            assert process.poll() is None, "it waits"
            assert "libtorch" in Path(f"/proc/{process.pid}/maps").read_text()
            fcntl.flock(ours, fcntl.LOCK_UN)
            assert process.wait(120) == 0
            fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            process.kill()
            process.wait()
