"""The rooms stand at the repository's root, are imported as profrun.<room>, and the wheel owns one name."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOMS = (
    "analysis",
    "api",
    "backends",
    "cli",
    "collectors",
    "contract",
    "doctor",
    "images",
    "in_job",
    "jobs",
    "plans",
    "reports",
    "runner",
    "store",
    "traces",
)
DOCKERFILES = ("Dockerfile.cuda", "Dockerfile.rocm")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_the_folder_at_the_root(room: str) -> None:
    module = importlib.import_module(f"profrun.{room}")
    assert module.__file__ is not None
    assert Path(module.__file__).resolve() == ROOT / room / "__init__.py"
    assert (ROOT / "src/profrun" / room).is_symlink()


@pytest.mark.parametrize("name", DOCKERFILES)
def test_a_dockerfile_is_found_from_the_package(name: str) -> None:
    found = files("profrun") / name
    assert found.read_bytes() == (ROOT / name).read_bytes()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built by the same backend as pip uses."""
    from hatchling.builders.wheel import WheelBuilder

    out = tmp_path_factory.mktemp("wheel")
    return Path(next(iter(WheelBuilder(str(ROOT)).build(directory=str(out), versions=["standard"]))))


def test_the_wheel_owns_no_global_name_but_profrun(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"profrun"}
    assert {f"profrun/{name}" for name in DOCKERFILES} <= set(names)
    assert "profrun/py.typed" in names


def test_the_wheel_holds_every_tracked_file_of_the_rooms(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "-z", *ROOMS], cwd=ROOT, capture_output=True, check=False
    ).stdout.decode()
    wanted = {f"profrun/{name}" for name in tracked.split("\0") if name and (ROOT / name).exists()}
    if not wanted:  # an unpacked archive has no git: then every module on disk
        wanted = {
            f"profrun/{path.relative_to(ROOT)}" for room in ROOMS for path in (ROOT / room).rglob("*.py")
        }
    assert wanted - held == set()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: then the wheel holds only Python")
def test_the_wheel_holds_the_compiled_parser_and_says_for_which_platform(wheel: Path) -> None:
    assert "profrun/collectors/torch/_events.so" in zipfile.ZipFile(wheel).namelist()
    assert wheel.name.startswith("profrun-")
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 1\n", "#!/no/such/program\n"], ids=["fails", "cannot start"]
)
def test_with_a_compiler_that_does_not_work_the_wheel_is_pure_python(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hatchling.builders.wheel import WheelBuilder

    compiler = tmp_path / "compiler"
    compiler.write_text(text)
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"{compiler} -std=c11")  # as without headers, and as from another machine
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    assert built.endswith("-py3-none-any.whl")
    assert not any(name.endswith(".so") for name in zipfile.ZipFile(built).namelist())


@pytest.mark.parametrize(("cc", "suffix"), [(True, ""), (False, "-py3-none-any.whl")])
def test_a_compiler_that_is_not_there_does_not_stop_the_build(
    cc: bool, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hatchling.builders.wheel import WheelBuilder

    monkeypatch.setenv("CC", "/no/such/compiler -std=c11")
    if not cc:
        monkeypatch.setenv("PATH", str(tmp_path))
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    held = zipfile.ZipFile(built).namelist()
    assert built.endswith(suffix)
    assert any(name.endswith("/_events.so") for name in held) is (cc and shutil.which("cc") is not None)


def test_the_wheel_works_unpacked_in_a_place_of_its_own(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = (
        "import sys, importlib.util, profrun; from profrun.cli import run\n"
        "assert profrun.__file__.startswith(sys.argv[1]), profrun.__file__\n"
        f"taken = [name for name in {ROOMS!r} if importlib.util.find_spec(name)]\n"
        "assert not taken, taken\n"
        "sys.exit(run(['--help']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(site)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "submit" in done.stdout


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel in it; its dependencies are those of this one."""
    home = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin/python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True)
    (site,) = (home / "lib").glob("python3*/site-packages")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # its own .pth are not read
    return home / "bin"


def installed(bin_folder: Path, folder: Path, *words: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run the installed ``profrun`` in a folder, without what this environment says of Python and profrun.

    Args:
        path: folders of programs, the PATH.
    """
    ours = ("PYTHON", "PROFRUN")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(bin_folder / "profrun"), *words],
        cwd=folder,
        env={**environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.thorough
def test_the_demo_runs_from_an_installed_wheel_in_any_folder(bin_folder: Path, tmp_path: Path) -> None:
    words = ("demo", "--json", "--repeats", "1", "--collectors", "none,torch")
    done = installed(bin_folder, tmp_path / "anywhere", *words, path="/usr/bin:/bin")
    (run,) = (tmp_path / "anywhere/runs").iterdir()
    found = json.loads(done.stdout)
    assert [(trial["variant"], trial["collector"], trial["state"]) for trial in found["trials"]] == [
        (variant, collector, "finished")
        for collector in ("none", "torch")
        for variant in ("baseline", "optimised")
    ]
    job = next(line for line in done.stderr.splitlines() if line.startswith("the job of this demo: "))
    assert Path(job.partition(": ")[2]).is_relative_to(bin_folder.parent)
    assert (run / "report.html").exists()


@pytest.mark.thorough
def test_an_example_is_copied_from_an_installed_wheel_and_runs(bin_folder: Path, tmp_path: Path) -> None:
    folder, path = tmp_path / "mine", f"{bin_folder}:/usr/bin:/bin"
    installed(bin_folder, folder, "job", "examples", "transformer_blocking", path=path)
    assert sorted(map(str, folder.rglob("*.*"))) == [
        f"{folder}/transformer_blocking.yaml",
        f"{folder}/workloads/transformer.py",
    ]
    words = ("submit", "transformer_blocking.yaml", "-c", "torch", "-n", "1", "--json")
    (trial,) = json.loads(installed(bin_folder, folder, *words, path=path).stdout)["trials"]
    assert (trial["variant"], trial["state"]) == ("layer", "finished")
