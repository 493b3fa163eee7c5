"""Every error that profrun raises on purpose.

One tree, with one exit code per branch (only ``profrun.cli`` exits)::

    ProfrunError
      UsageError        64  the command line or the job spec is wrong
      InputError        65  a file that was given cannot be read as what it should be
      UnavailableError  69  something needed is not there: a tool, an engine, a permission, a GPU
        DiskFullError   69  a disk is full
      FailedError        1  the thing asked for ran and failed
      InconclusiveError  2  the data do not allow an answer

The message says what happened, ``why`` the likely reason, ``fix`` what to do. Every other exception is a bug
of profrun and exits with 70.
"""

from __future__ import annotations

MOST_OF_MESSAGE = 600
"""Characters of each part of a message: a value of a file may have millions."""


def bounded(text: str, most: int = MOST_OF_MESSAGE) -> str:
    """The text, or its beginning and its end with ``...`` between them, in at most ``most`` characters.

    Lines of a text with several are bounded one by one.
    """
    if len(text) <= most:
        return text
    if "\n" in text:
        return "\n".join(bounded(line, most) for line in text.split("\n"))
    end = most // 4
    return f"{text[: most - end - 5]} ... {text[-end:]}"


class ProfrunError(Exception):
    """Base of all expected errors.

    Args:
        what: what happened, one sentence without a full stop.
        why: the likely reason, or None.
        fix: what the user can do, or None.
    """

    exit_code = 1

    def __init__(self, what: str, *, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        """One line: what happened: why likely; what to do. Long parts are shortened."""
        text = bounded(self.what)
        if self.why:
            text += f": {bounded(self.why)}"
        if self.fix:
            text += f"; {bounded(self.fix)}"
        return text


class UsageError(ProfrunError):
    """The command line or a job spec is wrong (exit 64)."""

    exit_code = 64


class InputError(ProfrunError):
    """A given file is not what it should be (exit 65)."""

    exit_code = 65


class UnavailableError(ProfrunError):
    """A tool, engine, permission or device that is needed is not there (exit 69)."""

    exit_code = 69


class DiskFullError(UnavailableError):
    """A disk, or a user's part of it, is full (exit 69)."""


class FailedError(ProfrunError):
    """What was asked for ran and failed (exit 1)."""

    exit_code = 1


class InconclusiveError(ProfrunError):
    """The data does not allow an answer (exit 2)."""

    exit_code = 2
