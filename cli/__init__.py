"""The command line: one module per command. ``main`` runs one and exits; no other room prints or exits."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from profrun.cli.asked import reset
from profrun.cli.bugs import report_bug
from profrun.cli.output import complain
from profrun.cli.streams import open_closed, print_any_letter
from profrun.contract.ends import DISK_FULL_ERRORS
from profrun.errors import ProfrunError, bounded

USAGE = 64
UNAVAILABLE = 69


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the ``profrun`` command: 0, 1, 2, 64, 65, 69 or 70 (``profrun.errors``)."""
    open_closed()
    code = run(sys.argv[1:] if args is None else list(args))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
    except OSError as error:
        code = _report_os(error)
    sys.exit(code)


def run(args: Sequence[str]) -> int:
    """Carry out one command line and return its exit code. No exception leaves, no traceback is shown."""
    reset()
    print_any_letter()
    try:
        return _run(args)
    except ProfrunError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted")
        return 1
    except BrokenPipeError:  # `profrun runs | head`: the reader has seen enough
        _silence_stdout()
        return 0
    except OSError as error:
        return _report_os(error)
    except Exception as error:
        return _no_descriptor() or report_bug(error)


def _no_descriptor() -> int:
    """Where no further file can be opened, that is why all else fails: one line and its exit code, else 0."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            complain(f"no further file can be opened: {error.strerror}; raise the limit with `ulimit -n`")
            return UNAVAILABLE
    return 0


def _report_os(error: OSError) -> int:
    """Print one line about a system error, which is no bug if the disk is full; returns the exit code."""
    if error.errno == errno.EIO and error.filename is None:  # the terminal was closed: nobody can read it
        _silence_stdout()
        return UNAVAILABLE
    if error.errno == errno.ENAMETOOLONG:
        complain(f"{bounded(str(error.filename))}: no file can have so long a name; give the path of a file")
        return USAGE
    if error.errno == errno.EFBIG:
        _silence_stdout()
        where = error.filename or "a file"
        complain(
            f"{where} would be larger than this process may write; raise the limit: `ulimit -f unlimited`"
        )
        return UNAVAILABLE
    if error.errno not in DISK_FULL_ERRORS:
        return _no_descriptor() or report_bug(error)
    _silence_stdout()  # the rest would fail again at exit
    where = error.filename or "what is printed"
    complain(f"{where} cannot be written: {error.strerror}; free some space, or write to another place")
    return UNAVAILABLE


def _run(args: Sequence[str]) -> int:
    import typer

    from profrun.cli.app import build

    usage_error: type[Exception] = typer.BadParameter.__mro__[1]  # click's own, wherever typer keeps it
    try:
        code = build().main(list(args), prog_name="profrun", standalone_mode=False)
    except usage_error as error:
        context = getattr(error, "ctx", None)
        said = error.format_message().replace("Value error, ", "")  # type: ignore[attr-defined]
        complain(bounded(said))
        if context is not None:
            print(f"Try `{context.command_path} --help`.", file=sys.stderr)
        return USAGE
    except typer.Abort:
        complain("interrupted")
        return 1
    if (
        code == 130
    ):  # typer's exit code for Ctrl-C; profrun's is 1, as for everything that did not come to its end
        complain("interrupted")
        return 1
    return int(code or 0)


def _silence_stdout() -> None:
    """Send the rest of stdout nowhere, so that Python does not fail again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
