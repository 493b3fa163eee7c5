"""Asks git for the commit of a job's code: the one place that knows how git is asked.

The wrapper asks inside the job, and the runner where a run is submitted.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.git_state import GitState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contract.git_state import Side

_TIMEOUT_S = 5.0
"""Seconds that one answer of git may take: a repository on a slow shared folder must not delay a trial."""


class Repositories:
    """The commits of folders, each folder asked once.

    Inside the job a repository of another user is read, too: in a container the files may belong to somebody
    else. Where the run is submitted git decides: a repository's own settings can name programs that it runs.

    Args:
        side: the side of the job on which this runs.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self._known: dict[str, GitState] = {}

    def of(self, argv: Sequence[str], cwd: str) -> GitState:
        """The commit of a command's code: of the folder of its program, else of its working directory.

        Args:
            argv: the user's command; its program is the first file that is named ``.py``.
            cwd: its working directory.
        """
        if shutil.which("git") is None:
            return GitState(why="git is not in this image" if self._side == "job" else "git is not installed")
        program = _program_folder(argv, cwd)
        found = self._asked(program) if program is not None else GitState()
        return found if found.sha is not None else self._asked(cwd)

    def _asked(self, folder: str) -> GitState:
        if folder not in self._known:
            self._known[folder] = self._ask(folder)
        return self._known[folder]

    def _ask(self, folder: str) -> GitState:
        options = ("-c", "safe.directory=*") if self._side == "job" else ()
        sha = _git(folder, *options, "rev-parse", "--verify", "HEAD")
        if not sha:
            whose = "" if options else " of this user"
            return GitState(why=f"{folder} is not in a git repository{whose} that has a commit")
        status = _git(folder, *options, "status", "--porcelain", "--untracked-files=no")
        return GitState(sha.strip(), None if status is None else bool(status.strip()), seen_by=self._side)


def _program_folder(argv: Sequence[str], cwd: str) -> str | None:
    """Folder of the command's program; None where no word is a file of Python."""
    files = (Path(cwd, word) for word in argv if word.endswith(".py"))
    return next((str(file.parent) for file in files if file.is_file()), None)


def _git(folder: str, *words: str) -> str | None:
    """What git prints; None where it fails or takes too long.

    No lock is taken: the user may work in the repository at the same time.
    """
    argv = ["git", "--no-optional-locks", "-C", folder, *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
