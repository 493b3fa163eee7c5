"""The image's file: the script itself, with stand-ins for enroot and apptainer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal

import pytest

from profrun.backends.slurm.image_file import image_file

Runtime = Literal["pyxis", "apptainer"]
MAKES = '#!/bin/bash\necho "$*" >>"$SAID"\nsleep 0.3\necho layers >"$WHERE"\n'


def _place(folder: Path, text: str) -> dict[str, str]:
    (folder / "slurm").mkdir()
    for name, where in (("enroot", "$3"), ("apptainer", "$3")):
        (folder / name).write_text(text.replace("$WHERE", where))
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "SAID": str(folder / "said")}


def _start(how: Runtime, reference: str, folder: Path, environ: dict[str, str]) -> subprocess.Popen[str]:
    found = image_file(how, reference, folder)
    assert found is not None
    text = f'{found.lines}\necho "$image"\n'
    return subprocess.Popen(
        ["bash", "-c", text], env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize(
    ("how", "reference", "asked"),
    [
        ("pyxis", "nvcr.io#nvidia/pytorch:25.12-py3", "docker://nvcr.io#nvidia/pytorch:25.12-py3"),
        ("apptainer", "docker://rocm/pytorch:1", "docker://rocm/pytorch:1"),
    ],
)
def test_four_tasks_at_once_make_it_once(tmp_path: Path, how: Runtime, reference: str, asked: str) -> None:
    environ = _place(tmp_path, MAKES)
    tasks = [_start(how, reference, tmp_path, environ) for _ in range(4)]
    files = {task.communicate(timeout=240)[0].strip() for task in tasks}
    (file,) = files
    assert Path(file).read_text() == "layers\n"
    (said,) = (tmp_path / "said").read_text().splitlines()
    assert said.endswith(asked)


def test_a_file_that_cannot_be_made_costs_no_trial(tmp_path: Path) -> None:
    environ = _place(tmp_path, '#!/bin/bash\necho half >"$WHERE"\necho "no space left" >&2\nexit 1\n')
    out, err = _start("pyxis", "a#b:1", tmp_path, environ).communicate(timeout=240)
    assert out.strip() == "a#b:1"
    assert "no space left" in err
    assert not list(tmp_path.glob("slurm/image-*.sqsh"))


def test_what_a_killed_task_left_is_made_anew(tmp_path: Path) -> None:
    environ = _place(tmp_path, MAKES)
    found = image_file("pyxis", "a#b:1", tmp_path)
    assert found is not None
    file = Path(found.remove.split()[-2])
    file.with_name(f"part-{file.name}").write_text("half")
    out, _ = _start("pyxis", "a#b:1", tmp_path, environ).communicate(timeout=240)
    assert Path(out.strip()).read_text() == "layers\n"


@pytest.mark.parametrize("image", ["/images/x.sqsh", "x.sqsh", "/images/x.sif"])
def test_a_file_stays_as_it_is(image: str) -> None:
    assert image_file("pyxis", image, Path("/run")) is None
