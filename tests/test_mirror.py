"""A test file lies where the module that it tests lies: tests/<room>/test_x.py tests profrun.<room>.x."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.test_layout import ROOMS

TESTS = ROOT / "tests"
WHOLE = {
    "analysis/compare/test_recordings.py": "comparisons of real recordings pass through the whole room",
    "analysis/rules/test_judged_findings.py": "findings of real recordings, judged by hand",
    "analysis/test_peers.py": "the numbers of other tools on the same files",
    "analysis/test_random.py": "random traces, and several questions asked of each",
    "api/test_package.py": "what `import profrun` offers is in the file of the package itself",
    "api/test_pages.py": "the page and the notebook about Python are no modules",
    "backends/kubernetes/test_run.py": "whole runs on a small cluster of the test's own",
    "cli/test_full_disk.py": "a whole run on a small disk of its own",
    "cli/test_hostile_folders.py": "every command, called for every kind of damaged folder",
    "cli/test_hostile_names.py": "every command that prints names, on hostile ones",
    "cli/test_secrets.py": "a whole run: a secret is in none of its files",
    "cli/test_summary_as_torch.py": "`summary --as torch`, beside the command's other tests",
    "cli/test_torch_equality.py": "from submit to summary: the numbers are torch's own",
    "collectors/nsys/test_exact.py": "real files through the whole reader, counted independently",
    "collectors/nsys/test_fuzz.py": "damaged files through the whole readers of nsys and ncu",
    "collectors/nsys/test_h200.py": "the same work under torch, nsys and ncu: three readers must agree",
    "collectors/nsys/test_whole_h200.py": "programs without steps under torch and nsys, recorded as a whole",
    "collectors/proton/test_trial.py": "a whole trial with a stand-in for triton.profiler",
    "collectors/rocprof/test_bad_input.py": "damaged files of every AMD format through the whole reader",
    "collectors/rocprof/test_exact.py": "real files through the whole reader, counted independently",
    "collectors/rocprof/test_same_twice.py": "a whole trace is the same when its file is read twice",
    "collectors/rocprof/test_trial.py": "a whole trial with a stand-in for rocprofv3",
    "collectors/torch/test_exact.py": "real files through the whole reader, counted independently",
    "collectors/torch/test_fuzz.py": "damaged files through the whole reader",
    "collectors/torch/test_truth.py": "a whole trace allows torch's own table",
    "images/test_lint.py": "the Dockerfiles and the scripts that they run are no Python modules",
}
"""Test files of a whole room: no one module is what they test. Each has its reason."""
FILES = sorted(
    path.relative_to(TESTS).as_posix() for room in ROOMS for path in (TESTS / room).rglob("test_*.py")
)


def module_of(file: str) -> str:
    """The module that a test file is named after, as a path from the root without ``.py``."""
    folder, _, name = file.rpartition("/")
    return f"{folder}/{name.removeprefix('test_').removesuffix('.py')}"


def has_module(file: str) -> bool:
    """Whether the module is there: as a file, or as a package."""
    module = ROOT / module_of(file)
    return module.with_suffix(".py").is_file() or module.is_dir()


def test_a_test_file_is_named_after_its_module() -> None:
    assert [file for file in FILES if file not in WHOLE and not has_module(file)] == []


def test_an_exception_is_there_and_is_one() -> None:
    assert WHOLE.keys() <= set(FILES)
    assert [file for file in WHOLE if has_module(file)] == []


def test_tests_with_real_tools_lie_where_ci_looks_for_them() -> None:
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (tools,) = re.findall(r'^tools="(.*?)"', run, re.MULTILINE)
    marker = re.compile(rf"\bmark\.(?:{tools.replace(' or ', '|')})\b")
    (places,) = re.findall(r'^    marked "\$@" (.*)$', run, re.MULTILINE)
    marked = [path for path in TESTS.rglob("*.py") if marker.search(path.read_text(encoding="utf-8"))]
    assert marked
    folders = [ROOT / place for place in places.split()]
    assert [path for path in marked if not any(map(path.is_relative_to, folders))] == []
