"""The bundle: deterministic, complete, nothing but the standard library, Python 3.9."""

from __future__ import annotations

import ast
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profrun.collectors.normalize import readers
from profrun.contract import profilers
from profrun.contract.codec import to_json
from profrun.contract.profilers import UnknownProfilerError, profiler
from profrun.errors import UsageError
from profrun.jobs.load import load_text
from profrun.jobs.schema import block_of, job_schema
from profrun.plans.bundle import bundle_files, profilers_of, write_bundle
from profrun.plans.make import make_command, make_plan


def test_the_same_tree_gives_the_same_bundle(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_bundle(tmp_path / name)
    found = {
        path.relative_to(tmp_path / "a").as_posix(): path.read_bytes()
        for path in (tmp_path / "a").rglob("*")
        if path.is_file()
    }
    assert found == bundle_files()
    write_bundle(tmp_path / "a")
    assert not (tmp_path / "a.partial").exists()


def test_everything_that_a_job_needs_is_there() -> None:
    files = bundle_files()
    for collector in ("none", "torch", "nsys", "ncu"):
        assert f"_profrun/collectors/{collector}/wrap.py" in files
    assert {f"_profrun/in_job/changes/{name}.py" for name in ("__init__", "loaders")} <= set(files)
    assert {"run.py", "site/sitecustomize.py", "shim/profrun/__init__.py"} <= set(files)
    assert not [name for name in files if "reader" in name or "__pycache__" in name]


def test_only_the_standard_library_and_relative_imports() -> None:
    """torch, nvtx and numpy may be used where the image has them: inside functions only."""
    for name, content in bundle_files().items():
        tree = ast.parse(content, name, feature_version=(3, 9))
        for node in tree.body:
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            for module in modules:
                root = module.split(".")[0]
                assert root in sys.stdlib_module_names or module.startswith("_profrun."), (name, module)


def test_the_wrapper_and_the_hook_run_on_python_3_9(tmp_path: Path) -> None:
    """Skipped where there is no Python 3.9 at all; the syntax is checked above in any case."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    known = [shutil.which("python3.9"), *map(str, pyenv.glob("versions/3.9*/bin/python"))]
    works = [path for path in known if path and not subprocess.run([path, "-c", ""], check=False).returncode]
    if not works:
        pytest.skip("no Python 3.9 on the PATH or in pyenv")
    old = works[0]
    from tests.in_job.kit import Trial

    script = (
        "import profrun, sys\n"
        "assert sys.version_info[:2] == (3, 9)\n"
        "@profrun.range('deco')\n"
        "def f(): pass\n"
        "for _ in range(5):\n"
        "    with profrun.range('r'): f()\n"
        "    profrun.step()\n"
        "try: profrun.open\n"
        "except AttributeError as error: print(error)\n"
    )
    trial = Trial(tmp_path, [old, "job.py"], script)
    code = subprocess.run(
        [old, str(trial.bundle / "run.py"), str(trial.folder)], capture_output=True, check=False
    )
    assert code.returncode == 0, code.stderr
    assert "stand-in offers profrun.range and profrun.step" in (trial.folder / "stdout.log").read_text()
    assert '"how": "explicit"' in (trial.folder / "exit.json").read_text()


TALLY = {
    "acme/__init__.py": "",
    "acme/tally/__init__.py": "",
    "acme/tally/profiler.py": """
from dataclasses import dataclass

from profrun.contract.options import Flag, option
from profrun.contract.profilers import Profiler


@dataclass(frozen=True)
class Options:
    loud: bool | None = option(Flag(), "Write in capitals.", "false")


PROFILER = Profiler(name="tally", title="Acme Tally", options=Options)
""".replace("bool | None", '"bool | None"'),
    "acme/tally/wrap.py": """
from acme.tally.profiler import Options
from profrun.contract.codec import from_json
from profrun.contract.wrapping import Wrapped, WrapRequest

WRITE = 'echo "$0" > "$1/tally.txt"; shift; exec "$@"'


def wrap(request: WrapRequest) -> Wrapped:
    word = "TALLY" if from_json(Options, request.options).loud else "tally"
    return Wrapped(("sh", "-c", WRITE, word, request.out, *request.argv), expected=("tally.txt",))
""",
    "acme/tally/reader.py": """
class TallyReader:
    name = "tally"

    def accepts(self, source):
        return source.head.lower().startswith(b"tally")


READERS = (TallyReader(),)
""",
    "acme_tally-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-tally\nVersion: 1.0\n",
    "acme_tally-1.0.dist-info/entry_points.txt": "[profrun.collectors]\ntally = acme.tally\n",
}
"""A package of somebody else that brings a profiler."""


def forget_profilers() -> None:
    """Look for installed profilers again."""
    importlib.invalidate_caches()
    for cached in (profilers.profiler, profilers._entry_points, block_of):
        cached.cache_clear()


@pytest.fixture
def tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package, installed; its folder."""
    site = tmp_path / "site"
    for name, text in TALLY.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(site))
    forget_profilers()
    yield site / "acme" / "tally"
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme"]:
        del sys.modules[name]
    forget_profilers()


SPEC = "name: x\ncommand: echo hello\ncollectors: [none, tally]\ntally: {loud: true}\n"


@pytest.mark.usefixtures("tally")
def test_a_profiler_of_another_package_runs_from_the_job_to_its_files(tmp_path: Path) -> None:
    plan = make_plan(load_text(SPEC))
    trial = plan.trials[1]
    assert (trial.id, trial.options) == ("001-default-tally-r1", {"tally": {"loud": True}})
    assert (plan.job.options["tally"], profilers_of(plan)) == (
        profiler("tally").options(loud=True),
        ["none", "tally"],
    )
    folder = tmp_path / "trials" / trial.id
    folder.mkdir(parents=True)
    told = make_command(plan, trial, "run", cwd=str(tmp_path))
    (folder / "command.json").write_text(json.dumps(to_json(told)))
    write_bundle(tmp_path / "bundle", profilers_of(plan))
    wrapper = [sys.executable, str(tmp_path / "bundle" / "run.py"), str(folder)]
    done = subprocess.run(wrapper, timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ended = json.loads((folder / "exit.json").read_text())
    assert (ended["state"], ended["profiler"]) == ("finished", "tally")
    assert [row["path"] for row in ended["artefacts"] if row["path"].endswith(".txt")] == [
        "raw/rank0/tally.txt"
    ]
    assert (folder / "raw/rank0/tally.txt").read_text() == "TALLY\n"
    assert (folder / "stdout.log").read_text() == "hello\n"
    assert [reader.name for reader in readers()][-1] == "tally"


@pytest.mark.usefixtures("tally")
def test_an_option_of_such_a_profiler_is_checked_and_in_the_schema() -> None:
    with pytest.raises(UsageError, match=r"job.yaml:4:9: tally: unknown key 'lud'; did you mean 'loud'"):
        load_text(SPEC.replace("loud", "lud"))
    assert "loud" in json.dumps(job_schema())


def test_what_is_not_there_inside_a_job_cannot_be_imported_by_what_is_shipped(tally: Path) -> None:
    (tally / "wrap.py").write_text("def wrap(request):\n    from profrun.jobs.load import load_job\n")
    with pytest.raises(UsageError, match=r"tally imports profrun.jobs.load, which is not there inside a job"):
        bundle_files(["tally"])


def test_a_profiler_that_nobody_brings_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="'tally' is not known; collectors: none, torch, "):
        load_text(SPEC)
    with pytest.raises(UnknownProfilerError):
        profiler("tally")


def test_a_job_of_built_in_profilers_reads_no_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr(profilers, "_entry_points", refuse)
    load_text("name: x\ncommand: run\ncollectors: [none, timeline]\nncu: {set: full}\n")
    load_text("name: x\ncommand: run\ncollectors: [torch]\nexpect: [{collector: torch, step_ms: 1}]\n")


@pytest.mark.parametrize("name", ["bundle", "bundle.partial"])
def test_a_link_in_its_place_is_not_followed(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").write_text("mine")
    (tmp_path / name).symlink_to(victim)
    write_bundle(tmp_path / "bundle")
    assert (tmp_path / "bundle/run.py").is_file()
    assert [path.name for path in victim.iterdir()] == ["mine"]
