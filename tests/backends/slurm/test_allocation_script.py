"""The script of a shared allocation: golden files, and the script itself with stand-ins for Slurm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from profrun.backends.slurm.allocation import Inside
from profrun.backends.slurm.allocation_script import render_allocation
from tests.backends.plans import plan
from tests.backends.slurm.test_script import CWD, GOLDEN, NGC, RUN

CASES = {
    "allocation": {"resources": "gpus: 2, nodes: 2, cpus: 8, timeout: 10m", "cluster": "partition: gpu"},
    "allocation-torchrun": {
        "image": NGC,
        "command": "torchrun train.py --batch {batch}",
        "resources": "gpus: 4, nodes: 2, ranks_per_node: 4",
        "cluster": "runtime: pyxis, gpu_type: h200, time: '6:00:00', srun_extra: [--mpi=pmix]",
    },
    "allocation-many": {"resources": "nodes: 2, ranks_per_node: 8, timeout: 10m"},
    "allocation-inside": {"resources": "gpus: 4, nodes: 2, ranks_per_node: 4, timeout: 10m"},
}


def script(name: str) -> str:
    """The golden case as profrun renders it now."""
    made = plan(**CASES[name])
    inside = Inside("7", 2) if "inside" in name else None
    return render_allocation(made, made.trials, RUN, CWD, name="allocation0", inside=inside)


@pytest.mark.parametrize("name", CASES)
def test_scripts_are_as_kept(name: str) -> None:
    kept = GOLDEN / f"{name}.sh"
    if os.environ.get("PROFRUN_GOLDEN") == "write":
        kept.write_text(script(name))
    assert script(name) == kept.read_text()


@pytest.mark.parametrize("name", CASES)
def test_scripts_are_bash(name: str) -> None:
    subprocess.run(["bash", "-n"], input=script(name), text=True, check=True)


class _Place:
    """A run folder, and stand-ins: srun says what it was given, squeue how much time is left."""

    def __init__(self, folder: Path, left: str = "1-02:03:04") -> None:
        self.folder = folder
        self.plan = plan(resources="timeout: 10m")
        self.trials = [trial.id for trial in self.plan.trials][:3]
        for name in self.trials:
            (folder / "trials" / name).mkdir(parents=True)
            (folder / "trials" / name / "command.json").write_text('{\n "attempt": 1\n}\n')
        (folder / "slurm").mkdir()
        (folder / "slurm/allocation0.turns").write_text("".join(f"{name}\n" for name in self.trials))
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.stand_in("srun", 'echo "step $*"; echo "${@: -1}" >>"$RAN"')
        self.stand_in("scontrol", "echo n1")
        self.stand_in("squeue", f"echo {left}")

    def stand_in(self, name: str, text: str) -> None:
        """A command on the PATH."""
        (self.bin / name).write_text(f"#!/bin/bash\n{text}\n")
        (self.bin / name).chmod(0o755)

    def run(self, restarts: int = 0, pause: str = "5") -> list[str]:
        """Run the script; the trials that got a step.

        Args:
            pause: seconds between two looks at a trial while srun runs.
        """
        text = render_allocation(self.plan, self.plan.trials[:3], self.folder, CWD, name="allocation0")
        text = text.replace("read -rt 5 ", f"read -rt {pause} ")
        ran = self.folder / "ran"
        environ = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "RAN": str(ran),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "n1",
            "SLURM_RESTART_COUNT": str(restarts),
        }
        subprocess.run(["bash"], input=text, text=True, env=environ, check=True)
        return [Path(line).name for line in ran.read_text().splitlines()] if ran.exists() else []

    @property
    def said(self) -> list[str]:
        """What the script wrote down."""
        return (self.folder / "slurm/allocation0.said").read_text().splitlines()


def test_trials_run_one_after_another_in_the_order_of_the_file(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    a, b, c = place.trials
    (tmp_path / "slurm/allocation0.turns").write_text(f"{b}\n{a}\n{c}\n")
    assert place.run() == [b, a, c]
    assert place.said == [line for name in (b, a, c) for line in (f"begin {name}", f"end {name} 0")]
    assert "run.py" in (tmp_path / f"slurm/allocation0.{a}.log").read_text()


def test_a_cancelled_trial_is_passed_over_and_the_others_run(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    a, b, c = place.trials
    (tmp_path / "trials" / b / "cancel").write_text("{}")
    assert place.run() == [a, c]
    assert f"skip {b} cancelled" in place.said


def test_after_a_cancel_of_the_run_nothing_runs(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    place.stand_in("srun", f'echo "${{@: -1}}" >>"$RAN"; touch {tmp_path}/cancel')
    assert place.run() == place.trials[:1]
    assert [line.split()[-1] for line in place.said if line.startswith("skip")] == ["cancelled"] * 2


@pytest.mark.parametrize(("left", "runs"), [("6:59", 0), ("7:01", 3), ("UNLIMITED", 3), ("0:30", 0), ("", 3)])
def test_no_turn_begins_without_time_for_its_report(tmp_path: Path, left: str, runs: int) -> None:
    """420 s: 60 s grace, twice nsys's 120 s, 60 s for the rest, and 60 s because Slurm may be early."""
    place = _Place(tmp_path, left)
    place.plan = plan(resources="timeout: 10m")
    place.plan = place.plan.__class__(
        place.plan.job, tuple(trial for trial in place.plan.trials if trial.collector == "nsys")
    )
    names = [trial.id for trial in place.plan.trials][:3]
    (tmp_path / "slurm/allocation0.turns").write_text("".join(f"{name}\n" for name in names))
    assert len(place.run()) == runs


def test_started_again_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """The first had finished, the second was interrupted, the third had not begun."""
    place = _Place(tmp_path)
    a, b, c = place.trials
    (tmp_path / "slurm/allocation0.said").write_text(f"begin {a}\nend {a} 0\nbegin {b}\n")
    (tmp_path / "trials" / a / "exit.json").write_text('{\n "state": "failed"\n}\n')
    (tmp_path / "trials" / b / "half.nsys-rep").write_text("half")
    assert place.run(restarts=1) == [b, c]
    assert (tmp_path / "trials" / b / "attempts/1/half.nsys-rep").read_text() == "half"
    assert '"attempt": 2' in (tmp_path / "trials" / b / "command.json").read_text()
    assert '"attempt": 1' in (tmp_path / "trials" / c / "command.json").read_text()
    assert place.said[3] == "restart"


def test_a_preempted_trial_that_still_wrote_its_end_runs_again(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    a, b, c = place.trials
    (tmp_path / "slurm/allocation0.said").write_text(f"begin {a}\nend {a} 0\n")
    document = '{\n "state": "timeout",\n "stopped_by": "SIGTERM"\n}\n'
    (tmp_path / "trials" / a / "exit.json").write_text(document)
    assert place.run(restarts=1) == [a, b, c]
    assert (tmp_path / "trials" / a / "attempts/1/exit.json").read_text() == document


_HANGS = """echo "step $*"; echo "${@: -1}" >>"$RAN"; echo $$ >"${@: -1}/srun"
[[ ${@: -1} != *$HANGS* ]] || exec sleep 100"""
_STEPS = """[[ $* != *--steps* ]] || { echo "7.batch|batch"; for file in trials/*/srun; do
    id=$(basename "$(dirname "$file")"); echo "7.$id|profrun:$id"; done; }"""


def test_a_step_that_goes_on_after_its_trial_has_ended_is_cancelled(tmp_path: Path) -> None:
    """As when its slurmstepd was killed: srun does not see the end."""
    place = _Place(tmp_path)
    a, b, c = place.trials
    place.stand_in("srun", _HANGS.replace("$HANGS", b))
    place.stand_in("squeue", f"cd {tmp_path}\n{_STEPS}")
    place.stand_in(
        "scancel", f'echo "$*" >>{tmp_path}/cancelled; kill $(cat {tmp_path}/trials/${{2#7.}}/srun)'
    )
    (tmp_path / "trials" / b / "exit.json").write_text("{}")
    assert place.run(pause="0.01") == [a, b, c]
    assert (tmp_path / "cancelled").read_text() == f"--quiet 7.{b}\n"
    assert place.said[3] == f"end {b} 143"
    shared = ["--overlap" in (tmp_path / f"slurm/allocation0.{name}.log").read_text() for name in (a, b, c)]
    assert shared == [False, False, True]
    assert (
        f"step 7.{b} goes on although {b} has ended" in (tmp_path / f"slurm/allocation0.{b}.log").read_text()
    )


def test_a_step_without_an_end_of_its_trial_is_left_alone(tmp_path: Path) -> None:
    """Also while a rank of an ended trial gives signs of life."""
    place = _Place(tmp_path)
    a, b, _ = place.trials
    place.stand_in("srun", 'echo "${@: -1}" >>"$RAN"; sleep 0.3')
    place.stand_in("scancel", f'echo "$*" >>{tmp_path}/cancelled')
    (tmp_path / "trials" / b / "exit.json").write_text("{}")
    (tmp_path / "trials" / b / "hook").mkdir()
    (tmp_path / "trials" / b / "hook/alive.rank1").write_text("")
    assert place.run(pause="0.001") == place.trials
    assert not (tmp_path / "cancelled").exists()
    assert place.said[1] == f"end {a} 0"
