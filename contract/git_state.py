"""``GitState``: the commit of a job's code, and which side of the job saw it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Side = Literal["job", "submit"]
"""Where git was asked: inside the job, or on the machine where the run was submitted or resumed."""


@dataclass(frozen=True)
class GitState:
    """Commit of the code that a trial runs.

    Attributes:
        sha: the commit; None where it is not known.
        dirty: whether tracked files differ from it; None where git did not say.
        why: why the job's side does not know the commit.
        seen_by: the side that saw it; None where neither did, and in files of profrun before 0.3, where it
            was the job.
    """

    sha: str | None = None
    dirty: bool | None = None
    why: str | None = None
    seen_by: Side | None = None

    @property
    def revision(self) -> str | None:
        """The commit and whether the code differs from it, for people; None where it is not known."""
        if self.sha is None:
            return None
        return self.sha + {True: ", with changes", False: ", clean", None: ""}[self.dirty]

    @property
    def text(self) -> str | None:
        """The same with the side that saw it where that is not the job, else why it is not known."""
        if self.revision is None or self.seen_by != "submit":
            return self.revision or self.why
        return f"{self.revision} (seen where the run was submitted{f'; {self.why}' if self.why else ''})"


def chosen(inside: GitState, submitted: GitState) -> GitState:
    """What the job saw; where it saw no commit, what was seen where the run was submitted.

    The job's side counts first, because its files are those that ran.
    """
    if inside.sha is not None:
        return inside
    if submitted.sha is not None:
        return replace(submitted, why=inside.why, seen_by="submit")
    return inside
