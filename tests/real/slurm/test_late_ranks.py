"""Ranks on a real Slurm that end later than others: late, slow to write, killed, on a node that dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import shared_data
from tests.real.slurm.conftest import Cluster, Desk, wait_for
from tests.real.slurm.test_runs import SLOW_NSYS, spec

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

TWO_NODES = "resources: {nodes: 2, timeout: 5m, grace: 5s}"
LATE = """
import os, pathlib, sys, time
rank, who, seconds = os.environ["RANK"], sys.argv[1], float(sys.argv[2])
pathlib.Path(f"began{rank}").touch()
if rank == who and not pathlib.Path("again").exists():
    time.sleep(seconds)
"""


@pytest.mark.parametrize("seconds", [1, 25])
def test_a_late_rank_is_waited_for(desk: Desk, seconds: int) -> None:
    desk.write("late.py", LATE)
    document = desk.submit(spec(f"python3 late.py 1 {seconds}", f"collectors: [none]\n{TWO_NODES}"))
    assert ends(document) == [("finished", None)]
    ended = exit_of(desk)
    assert (ended["wrappers"], ended["silent"]) == (2, [])
    assert answer(desk, 1)["ended_ns"] - ended["ended_ns"] > (seconds - 1) * 1e9


def test_a_profiler_of_one_rank_may_write_for_longer_than_the_grace(desk: Desk) -> None:
    desk.write("late.py", LATE)
    recording = shared_data("h200/nsys/mlp.sqlite")
    fake = desk.write(
        "nsys",
        SLOW_NSYS.replace("SECONDS", "25 * (os.environ['RANK'] == '1')")
        .replace("RECORDING", repr(str(recording)))
        .replace("import pathlib", "import os, pathlib"),
        0o755,
    )
    environ = {"PATH": f"{desk.folder}:{desk.cluster.environ['PATH']}", "PROFRUN_NSYS": str(fake)}
    document = desk.submit(spec("python3 late.py 1 0", f"collectors: [nsys]\n{TWO_NODES}"), environ=environ)
    assert ends(document) == [("finished", None)]
    ended = exit_of(desk)
    written = {row["path"] for row in ended["artefacts"] if row["state"] == "whole"}
    assert {path.split("/")[1] for path in written if path.endswith(".nsys-rep")} == {"rank0", "rank1"}


def test_a_rank_that_was_killed_fails_the_trial_and_is_named(desk: Desk) -> None:
    desk.write("late.py", LATE)
    desk.write("job.yaml", spec("python3 late.py 1 500", f"collectors: [none]\n{TWO_NODES}"))
    process = desk.start("submit", "job.yaml", "--backend", "slurm", "--json")
    wait_for(desk.folder / "began1")
    wait_for(trial_folder(desk) / "hook/exit.rank0.json")
    wait_for(lambda: "waits for rank 1" in desk.profrun("status", "last").stdout)
    kill(pids(desk.cluster, "n2"))
    out, err = process.communicate(timeout=400)
    assert ends(json.loads(out)) == [
        ("failed", "rank 1 never said how it ended: it was killed, or its node is gone")
    ], err
    assert exit_of(desk)["code"] == "rank-silent"
    assert desk.cluster.run("squeue", "-h") == ""


def test_the_program_of_a_rank_ends_with_its_wrapper(desk: Desk) -> None:
    """Only the wrapper is killed, as the out-of-memory killer may do it."""
    desk.write("late.py", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LATE)
    desk.write("job.yaml", spec("python3 late.py 1 500", f"collectors: [none]\n{TWO_NODES}"))
    process = desk.start("submit", "job.yaml", "--backend", "slurm", "--json")
    wait_for(desk.folder / "began1")
    programs = [pid for pid in pids(desk.cluster, "n2") if "late.py" in words(pid)]
    assert programs
    wrappers = [
        pid for pid in pids(desk.cluster, "n2") if any(word.endswith("run.py") for word in words(pid))
    ]
    (wrapper,) = [pid for pid in wrappers if parent(pid) not in wrappers]
    kill([wrapper])
    wait_for(lambda: not set(programs) & set(pids(desk.cluster, "n2")))
    out, err = process.communicate(timeout=400)
    assert ends(json.loads(out)) == [
        ("failed", "rank 1 never said how it ended: it was killed, or its node is gone")
    ], err


@pytest.mark.parametrize("allocation", ["one", "each"])
def test_a_killed_slurmstepd_keeps_no_trial_from_its_turn(desk: Desk, allocation: str) -> None:
    """srun alone would wait until the time limit: it does not see that its step has ended."""
    desk.write("work.py", "import pathlib, time\npathlib.Path('began').touch()\ntime.sleep(3)\n")
    rest = f"repeats: 2\ncluster: {{allocation: {allocation}}}\nresources: {{timeout: 5m, grace: 5s}}"
    desk.write("job.yaml", spec("python3 work.py", f"collectors: [none]\n{rest}"))
    process = desk.start("submit", "job.yaml", "--backend", "slurm", "--json")
    wait_for(desk.folder / "began")
    daemons = {
        parent(pid) for pid in pids(desk.cluster, "n1") if any("run.py" in word for word in words(pid))
    }
    kill([pid for pid in daemons if words(pid)[0].startswith("slurmstepd:")])
    out, err = process.communicate(timeout=400)
    assert ends(json.loads(out)) == [("finished", None)] * 2, err
    logs = "".join(file.read_text() for file in (desk.run_folder() / "slurm").glob("*.log"))
    assert "goes on although" in logs
    assert desk.cluster.run("squeue", "-h") == ""


def test_cancel_ends_a_trial_that_waits_for_a_rank(desk: Desk) -> None:
    desk.write("late.py", LATE)
    desk.write("job.yaml", spec("python3 late.py 1 500", f"collectors: [none]\n{TWO_NODES}"))
    process = desk.start("submit", "job.yaml", "--backend", "slurm", "--json")
    wait_for(desk.folder / "began1")
    wait_for(trial_folder(desk) / "hook/exit.rank0.json")
    desk.profrun("cancel", "last")
    out, err = process.communicate(timeout=300)
    assert [trial["state"] for trial in json.loads(out)["trials"]] == ["cancelled"], err
    assert exit_of(desk)["silent"] == []


def test_a_trial_whose_node_dies_is_repeated_by_slurm(desk: Desk) -> None:
    desk.write("late.py", LATE)
    desk.write("job.yaml", spec("python3 late.py 1 500", f"collectors: [none]\n{TWO_NODES}"))
    process = desk.start("submit", "job.yaml", "--backend", "slurm", "--json")
    wait_for(desk.folder / "began1")
    wait_for(trial_folder(desk) / "hook/exit.rank0.json")
    (desk.folder / "again").touch()  # in the second attempt nobody is late
    run = desk.cluster.run
    job = json.loads((desk.run_folder() / "slurm/array0.json").read_text())["job"]
    with dead_node(desk.cluster, "n2"):
        # What the controller does by itself after SlurmdTimeout, 300 s.
        run("scontrol", "update", "nodename=n2", "state=down", "reason=dead")
        wait_for(lambda: "PENDING" in run("squeue", "-h", "-o", "%T", "-j", job))
        assert process.poll() is None
    wait_for(lambda: set(run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"})
    run("scontrol", "update", f"jobid={job}_0", "StartTime=now+2")  # Slurm itself waits two minutes
    out, err = process.communicate(timeout=300)
    assert ends(json.loads(out)) == [("finished", None)], err
    assert (exit_of(desk)["attempt"], exit_of(desk)["silent"]) == (2, [])
    assert (trial_folder(desk) / "attempts/1/hook/exit.rank0.json").exists()


def ends(document: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """State and reason of each trial."""
    return [(trial["state"], trial.get("reason")) for trial in document["trials"]]


def trial_folder(desk: Desk) -> Path:
    """Of the only trial."""
    (found,) = (desk.run_folder() / "trials").iterdir()
    return found


def exit_of(desk: Desk) -> dict[str, Any]:
    """The only trial's exit.json."""
    value: dict[str, Any] = json.loads((trial_folder(desk) / "exit.json").read_text())
    return value


def answer(desk: Desk, rank: int) -> dict[str, Any]:
    """What the wrapper of a rank said."""
    value: dict[str, Any] = json.loads((trial_folder(desk) / f"hook/exit.rank{rank}.json").read_text())
    return value


def pids(cluster: Cluster, node: str) -> list[int]:
    """Processes of steps on a node of this cluster, by their environment."""
    wanted = {f"SLURMD_NODENAME={node}", f"SLURM_CONF={cluster.environ['SLURM_CONF']}"}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            around = set((folder / "environ").read_bytes().decode(errors="replace").split("\0"))
            if wanted <= around:
                found.append(int(folder.name))
    return found


def words(pid: int) -> list[str]:
    """The command line of a process; empty when it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    return []


def parent(pid: int) -> int:
    """The parent of a process that runs."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(processes: list[int]) -> None:
    """At once."""
    assert processes
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def dead_node(cluster: Cluster, node: str) -> Iterator[None]:
    """All that runs on a node is gone; when the block ends its slurmd is started again."""
    daemon = int((cluster.base / f"run/slurmd.{node}.pid").read_text())
    tasks = pids(cluster, node)
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in tasks}
    steps = [pid for pid in parents if "slurmstepd" in Path(f"/proc/{pid}/cmdline").read_text()]
    kill([daemon, *steps, *tasks])
    try:
        yield
    finally:
        subprocess.run(["slurmd", "-N", node], env=dict(cluster.environ), check=True, timeout=60)
