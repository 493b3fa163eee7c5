"""What every test may use: the shared real files, and tools that must be there in CI."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PROFRUN_SHARED", ROOT.parent / "shared"))
DATA = SHARED / "data"

# The `python` of a job in a test is the one that runs the tests, however pytest was started: the one
# that the machine finds first need not have torch.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

# Parallel workers are given a width and a single process is not: text that is held to a width says so itself.
os.environ.pop("COLUMNS", None)

# Some machines keep Python from writing bytecode. Each of the thousand programs that the tests start would
# compile all of profrun again then, and a test of a command's cost would measure the compiler.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The key that seals where a run was made is the user's: tests have one of their own.
os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir(), f"profrun-tests-{getpass.getuser()}"))

# Started in the background by a shell, Ctrl-C would be ignored here and in every program a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

THOROUGH = os.environ.get("PROFRUN_FUZZ") == "thorough"
"""Whether property tests try many examples instead of a few."""

# No deadline: a loaded machine must not fail a property that holds.
settings.register_profile("profrun", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("thorough" if THOROUGH else "profrun")


@pytest.hookimpl(trylast=True)  # of those that -m chose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests are started first: at the end of a suite the other processes would wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def unpack(archive: tarfile.TarFile, folder: Path, members: Iterable[tarfile.TarInfo] | None = None) -> None:
    """Unpack an archive, or some of it; with the filter that newer versions of Python ask for."""
    safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    archive.extractall(folder, members, **safe)


def examples(few: int, many: int) -> settings:
    """Settings of a property test: ``few`` examples by default, ``many`` with PROFRUN_FUZZ=thorough."""
    return settings(max_examples=many if THOROUGH else few)


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of a test: the first ``count`` of them by default, the rest with ``-m thorough``.

    They come in order of how much each shows that those before it do not.
    """
    every = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*value, marks=() if number < count else pytest.mark.thorough)
        for number, value in enumerate(every)
    ]


def missing(what: str) -> NoReturn:
    """Skip for a person, fail in CI: a skipped test there would pass off as green."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is not there, and CI must have it")
    pytest.skip(f"{what} is not there")


def shared_data(relative: str) -> Path:
    """A real profiler file that belongs to others: read where it lies, never copied into the project."""
    path = DATA / relative
    if not path.exists():
        missing(str(path))
    return path


def need_tool(name: str) -> str:
    """Path of an executable; skips or (CI) fails when it is not there."""
    found = shutil.which(name)
    if found is None:
        missing(name)
    return found
