"""The bundle: deterministic, complete, nothing but the standard library, Python 3.9."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profrun.plans.bundle import bundle_digest, bundle_files, write_bundle


def test_the_same_tree_gives_the_same_bundle(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_bundle(tmp_path / name)
    found = {
        path.relative_to(tmp_path / "a").as_posix(): path.read_bytes()
        for path in (tmp_path / "a").rglob("*")
        if path.is_file()
    }
    assert found == bundle_files()
    assert bundle_digest() == bundle_digest()
    write_bundle(tmp_path / "a")
    assert not (tmp_path / "a.partial").exists()


def test_everything_that_a_job_needs_is_there() -> None:
    files = bundle_files()
    for collector in ("none", "torch", "nsys", "ncu"):
        assert f"_profrun/collectors/{collector}/wrap.py" in files
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
