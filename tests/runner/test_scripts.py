"""A command's script is looked for before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.errors import UnavailableError
from profrun.runner.planning import plan_job
from profrun.runner.scripts import need_scripts, script_of


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


def test_the_first_trial_without_its_script_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    job = tmp_path / "job.yaml"
    job.write_text("name: t\ncommand: python {which}.py\nvariants: {one: {which: a}, two: {which: b}}\n")
    plan = plan_job(job)
    with pytest.raises(UnavailableError, match=r"^b\.py is not in .*: two's command runs there, .*; start"):
        need_scripts(plan, tmp_path)
    (tmp_path / "b.py").touch()
    need_scripts(plan, tmp_path)


def test_an_absolute_path_may_lie_in_the_image(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: t\ncommand: python /opt/only/in/the/image.py\n")
    need_scripts(plan_job(job), tmp_path)


def test_the_jobs_workdir_is_where_the_script_is_looked_for(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: t\ncommand: python a.py\nworkdir: sub\n")
    (tmp_path / "a.py").touch()
    with pytest.raises(UnavailableError, match=r"sub: default's command runs there, in the job's workdir;"):
        need_scripts(plan_job(job), tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.py").touch()
    need_scripts(plan_job(job), tmp_path)
