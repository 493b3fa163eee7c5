"""The programs that `profrun improve` is judged by: the table tells the truth, and they run."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from bench.programs.improve.table import CLEAN, HERE, PLANTED, PROGRAMS, Program

from profrun.contract.changes import parse
from tests.conftest import ROOT, first, missing
from tests.support.forked_programs import outputs


def _need_torch() -> None:
    if find_spec("torch") is None:
        missing("torch")


def _known(out: Path, name: str) -> dict[str, Any]:
    """Measure a program with three steps; returns what known.json says of it."""
    script = str(ROOT / "bench" / "improve.py")
    argv = [sys.executable, script, "known", str(out), "--only", name, "--repeats", "1"]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads wait for each other on a busy machine
    done = subprocess.run(
        [*argv, "--steps", "3"], capture_output=True, text=True, check=False, timeout=280, env=one_thread
    )
    assert done.returncode == 0, done.stdout + done.stderr
    programs: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))["programs"]
    return dict(programs[name])


def _lines(programs: Sequence[Program], *, fixed: bool = False) -> list[dict[str, Any]]:
    """The last line of each program, which runs three steps."""
    found = []
    commands = [program.argv("", on_gpu=False, fixed=fixed, steps=3)[1:] for program in programs]
    for program, (code, out, err) in zip(programs, outputs(commands), strict=True):
        assert code == 0, f"{program.name}: {err}"
        found.append(json.loads(out.splitlines()[-1]))
    return found


def test_there_are_20_programs_of_each_sort() -> None:
    assert (len(PLANTED), len(CLEAN), len(PROGRAMS)) == (20, 20, 40)


def test_every_file_is_in_the_table_and_every_row_has_its_file() -> None:
    assert {program.script for program in PROGRAMS.values()} == {
        path.name for path in HERE.glob("*.py") if path.stem not in {"parts", "table", "in_turn"}
    }


@pytest.mark.parametrize("program", PLANTED, ids=lambda program: program.name)
def test_a_change_of_the_table_is_one_of_profrun_written_in_full(program: Program) -> None:
    assert [parse(text).text for text in (program.change, *program.others)] == [
        program.change,
        *program.others,
    ]
    assert "args.fixed" in program.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.name)
def test_a_clean_program_has_no_remedy(program: Program) -> None:
    assert program.change == ""
    assert "planted=False" in program.path.read_text(encoding="utf-8")


def test_a_command_of_several_ranks_goes_through_torchrun() -> None:
    several = PROGRAMS["tiny_buckets"]
    assert several.argv("py", on_gpu=True, fixed=True, steps=5) == [
        *("py", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *(str(HERE / "tiny_buckets.py"), "--fixed", "--steps", "5"),
    ]


def test_sizes_for_a_gpu_are_not_given_to_a_program_on_the_cpu() -> None:
    program = PROGRAMS["clean_gemm_8192"]
    assert "--width" in program.argv("py", on_gpu=True)
    assert program.argv("py", on_gpu=False) == ["py", str(HERE / "clean_gemm.py")]


@pytest.mark.parametrize("name", first(1, ["zero_grad", "tiny_buckets"]))  # the latter has two ranks
def test_a_known_gain_is_measured_of_two_versions_that_compute_the_same(name: str, tmp_path: Path) -> None:
    _need_torch()
    measured = _known(tmp_path / "known.json", name)
    assert (len(measured["plain_ms"]), len(measured["fixed_ms"]), measured["problem"]) == (1, 1, "")
    assert measured["same_result"] is True


@pytest.mark.long
@pytest.mark.thorough
def test_both_versions_of_every_program_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _need_torch()
    monkeypatch.syspath_prepend(str(ROOT / "bench"))  # its modules import their neighbours as its scripts do
    known = importlib.import_module("improving.known")
    programs = [program for program in PLANTED if program.ranks == 1]
    plain, fixed = _lines(programs), _lines(programs, fixed=True)
    differ = []
    for program, *lines in zip(programs, plain, fixed, strict=True):
        measured = known.Known(program.name, program.change)
        for line, is_fixed in zip(lines, (False, True), strict=True):
            measured.add(line, fixed=is_fixed)
        if not measured.same:
            differ.append(measured)
    assert differ == []


@pytest.mark.thorough
def test_every_clean_program_runs_and_prints_its_step_time() -> None:
    _need_torch()
    programs = list({program.script: program for program in CLEAN}.values())
    for line in _lines(programs):
        assert line["steps"] == 3
        assert line["median_step_ms"] > 0
