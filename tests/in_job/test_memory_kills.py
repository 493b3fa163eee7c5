"""Want of memory is told by the kernel's own counts, of the control group and of the machine."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from profrun.in_job.memory_kills import Kills, count, since
from tests.conftest import missing
from tests.in_job.kit import Trial, python

V2, V1 = "0::/job\n", "5:cpu:/\n4:cpuset,memory:/job\n0::/\n"


def machine(
    root: Path, cgroup: str, files: dict[str, str], vmstat: str | None = "pgfault 9\noom_kill 2\n"
) -> Path:
    """This machine's files."""
    texts = {"proc/self/cgroup": cgroup, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()}}
    if vmstat is not None:
        texts["proc/vmstat"] = vmstat
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("cgroup", "files", "group"),
    [
        (V2, {"job/memory.events": "low 0\noom 3\noom_kill 4\noom_group_kill 0\n"}, 4),
        (V2, {"memory.events": "oom_kill 1\n"}, 1),
        (V1, {"memory/job/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"}, 5),
        (V1, {"memory/memory.oom_control": "under_oom 0\noom_kill 6\n"}, 6),
        (V1, {"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, None),
        ("0::/\n", {}, None),
        ("", {}, None),
    ],
    ids=["v2", "v2 in a container", "v1", "v1 in a container", "an old kernel", "no limits", "no groups"],
)
def test_the_counts(tmp_path: Path, cgroup: str, files: dict[str, str], group: int | None) -> None:
    assert count(machine(tmp_path, cgroup, files)) == Kills(group, 2)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (Kills(3, 1), "group"),
        (Kills(4, 1), "machine"),
        (Kills(None, 1), "machine"),
        (Kills(4, 2), "none"),
        (Kills(4, None), "unknown"),
        (Kills(), "unknown"),
    ],
)
def test_what_they_tell(tmp_path: Path, before: Kills, said: str) -> None:
    assert since(before, machine(tmp_path, V2, {"job/memory.events": "oom_kill 4\n"})) == said


def test_a_machine_without_counts_tells_nothing(tmp_path: Path) -> None:
    assert since(Kills(), tmp_path) == "unknown"


def test_a_program_killed_by_hand_is_not_said_to_have_run_out_of_memory(tmp_path: Path) -> None:
    if count().machine is None:
        missing("oom_kill in /proc/vmstat")
    done = Trial(tmp_path, python("import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")).run()
    assert done.exit["signal"] == signal.Signals.SIGKILL.name
    assert "was killed by a person, another program or a batch system" in done.exit["reason"]
