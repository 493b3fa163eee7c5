"""A command's program and script are looked for before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.errors import UnavailableError
from profrun.plans.model import Plan
from profrun.runner.planning import plan_job, spec_at
from profrun.runner.scripts import need_programs, script_of


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        (["python", "work.py", "8"], "work.py"),
        (["/usr/bin/python3.12", "-u", "-X", "dev", "-W", "error", "a/work.py", "-m"], "a/work.py"),
        (["python", "-m", "pkg", "x.py"], None),
        (["python", "-mpkg"], None),
        (["python", "-c", "pass"], None),
        (["python", "-"], None),
        (["python"], None),
        (["torchrun", "work.py"], None),
        (["bash", "-c", "python work.py"], None),
        ([], None),
    ],
)
def test_the_script_of_a_command(argv: list[str], script: str | None) -> None:
    assert script_of(argv) == script


def planned(folder: Path, text: str) -> Plan:
    (folder / "job.yaml").write_text(f"name: t\n{text}\n")
    return plan_job(spec_at(folder / "job.yaml"))


@pytest.mark.parametrize("backend", ["local", "docker", "slurm"])
def test_the_first_script_that_is_not_there_is_named(tmp_path: Path, backend: str) -> None:
    (tmp_path / "a.py").touch()
    plan = planned(tmp_path, "command: python3 {which}.py\nvariants: {one: {which: a}, two: {which: b}}")
    with pytest.raises(UnavailableError) as caught:
        need_programs(plan, tmp_path, backend)
    assert str(caught.value) == (
        f"cannot find b.py in {tmp_path}: the command runs there, because the job's paths count from that "
        "folder; correct the path in the command, or name the folder that it counts from with --cwd DIR"
    )
    (tmp_path / "b.py").touch()
    need_programs(plan, tmp_path, backend)


def test_an_absolute_path_may_lie_in_the_image(tmp_path: Path) -> None:
    need_programs(planned(tmp_path, "command: python3 /opt/only/in/the/image.py"), tmp_path, "docker")


def test_a_container_sees_the_jobs_folder_its_workdir_and_its_mounts(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    folder = tmp_path / "jobs"
    folder.mkdir()
    outside = planned(folder, "command: python3 ../a.py")
    need_programs(outside, folder, "local")
    with pytest.raises(UnavailableError) as caught:
        need_programs(outside, folder, "docker")
    said = str(caught.value)
    assert said.startswith(
        f"the container does not see {tmp_path}/a.py: it sees the folder of the job, {folder},"
    )
    assert "; set `workdir: ..` in the job," in said
    need_programs(planned(folder, "command: python3 a.py\nworkdir: .."), folder, "docker")
    mounts = f"mounts: ['..:{tmp_path}']"
    need_programs(planned(folder, f"command: python3 ../a.py\n{mounts}"), folder, "docker")


def test_a_clusters_pods_do_not_see_this_folder(tmp_path: Path) -> None:
    need_programs(planned(tmp_path, "command: python only_in_the_image.py"), tmp_path, "kubernetes")


def test_the_jobs_workdir_is_where_the_script_is_looked_for(tmp_path: Path) -> None:
    plan = planned(tmp_path, "command: python3 a.py\nworkdir: sub")
    (tmp_path / "a.py").touch()
    with pytest.raises(UnavailableError, match=r"sub: .* because `workdir` of the job names that folder;"):
        need_programs(plan, tmp_path, "local")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.py").touch()
    need_programs(plan, tmp_path, "local")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("pyhton3 a.py", "there is no program 'pyhton3': it is not on the PATH; did you mean 'python3'?"),
        ("no_tool_xyz 1", "there is no program 'no_tool_xyz': it is not on the PATH; install it, activate"),
        ("a.py", "a.py is a file, not a program on the PATH; run it with its interpreter: python a.py"),
        ("tool", "tool is a file, not a program on the PATH; give its path (./tool), and make it executable"),
        ("./a.py", "./a.py cannot be started: it is not executable; run it with its interpreter: python a"),
        ("bin/x y", "cannot find the program bin/x in FOLDER; correct the path in the command, or name"),
    ],
)
def test_a_program_that_cannot_be_started_here_is_said(tmp_path: Path, command: str, said: str) -> None:
    for name in ("a.py", "tool"):
        (tmp_path / name).touch()
    plan = planned(tmp_path, f"command: {command}")
    with pytest.raises(UnavailableError) as caught:
        need_programs(plan, tmp_path, "local")
    assert str(caught.value).startswith(said.replace("FOLDER", str(tmp_path)))
    need_programs(plan, tmp_path, "slurm")  # it may be on the nodes


def test_the_path_of_the_trial_counts(tmp_path: Path) -> None:
    (tmp_path / "tool").touch()
    (tmp_path / "tool").chmod(0o755)
    need_programs(planned(tmp_path, f"command: tool\nenv: {{PATH: {tmp_path}}}"), tmp_path, "local")
    need_programs(planned(tmp_path, "command: ./tool"), tmp_path, "local")
