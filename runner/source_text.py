"""The source round the lines that have most of the GPU time, as a report embeds it: ``source_of``.

The files are read as they are on this machine now. A trace may come from somebody else and names the files,
so only regular files that are called ``.py`` are read, and no link is followed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from profrun.contract.line_names import Line
from profrun.contract.safe_files import OddFileError, read_file
from profrun.contract.source_digests import digests_of
from profrun.contract.units import counted, percent_text
from profrun.reports.content import SOURCE_SHARE, Source, SourceBlock
from profrun.runner.source_secrets import public_lines

if TYPE_CHECKING:
    from profrun.analysis.trace.line_table import PlaceTable
    from profrun.contract.redact import Redactor

MOST = 50
"""Most lines whose surroundings are embedded."""
CONTEXT = 6
"""Lines before and after each of them."""
WIDTH = 240
"""Characters of a line that are embedded."""
_BYTES = 4 << 20
"""Largest file that is read."""


@dataclass(frozen=True)
class _File:
    """The lines of a file without its secrets, or why it has none; and whether it has changed."""

    lines: Sequence[str]
    missing: str = ""
    changed: bool = False


def source_of(
    table: PlaceTable,
    redactor: Redactor,
    recorded_ns: int | None,
    digests: Mapping[str, tuple[str, ...]] | None = None,
) -> Source:
    """The lines of the program round those with at least ``SOURCE_SHARE`` of the GPU time.

    Args:
        table: the GPU time by line.
        redactor: knows the values that are hidden.
        recorded_ns: unix ns at which the recording began; None where that is not known.
        digests: file -> digest of each line when the program was mapped. Of other files, a change is told by
            the time of the file.
    """
    wanted = [row.place for row in table.rows if row.share >= SOURCE_SHARE and isinstance(row.place, Line)]
    notes = [] if wanted else [f"no line has {percent_text(SOURCE_SHARE)} of the GPU time"]
    if len(wanted) > MOST:
        notes.append(
            f"{counted(len(wanted) - MOST, 'further line')} of {percent_text(SOURCE_SHARE)} or more not shown"
        )
    numbers: dict[str, list[int]] = defaultdict(list)
    for line in wanted[:MOST]:
        numbers[line.file].append(line.line)
    blocks: list[SourceBlock] = []
    for name, mine in numbers.items():
        file = _read(name, redactor, recorded_ns, (digests or {}).get(name))
        if file.missing:
            notes.append(f"{name} is not shown: {file.missing}")
            continue
        if file.changed:
            notes.append(f"{name} was changed after the recording: its lines may be others now")
        beyond = [number for number in mine if number > len(file.lines)]
        if beyond:
            notes.append(
                f"{name} has {counted(len(file.lines), 'line')} now: line {min(beyond)} is not shown"
            )
        blocks += _blocks(name, file.lines, [number for number in mine if number not in beyond])
    return Source(tuple(blocks), tuple(notes))


def _blocks(name: str, lines: Sequence[str], numbers: Sequence[int]) -> Iterator[SourceBlock]:
    """The stretches of a file round some of its lines; those that touch are one."""
    stretches: list[tuple[int, int]] = []
    for number in sorted(numbers):
        first, last = max(1, number - CONTEXT), min(len(lines), number + CONTEXT)
        if stretches and first <= stretches[-1][1] + 1:
            stretches[-1] = (stretches[-1][0], last)
        else:
            stretches.append((first, last))
    for first, last in stretches:
        shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]} ..." for line in lines[first - 1 : last]]
        yield SourceBlock(name, first, tuple(shown))


def _read(name: str, redactor: Redactor, recorded_ns: int | None, known: tuple[str, ...] | None) -> _File:
    path = Path(name)
    if not path.is_absolute():
        return _File((), "the recording has no whole path of it")
    if PurePath(name).suffix != ".py":
        return _File((), "only files that end in .py are read")
    try:
        text = read_file(path, _BYTES).decode("utf-8", errors="replace")
        changed_ns = path.stat().st_mtime_ns
    except FileNotFoundError:
        return _File((), "it is not on this machine")
    except OddFileError as error:
        return _File((), error.what)
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        return _File((), getattr(error, "strerror", None) or str(error))
    lines = public_lines(text, redactor)
    later = recorded_ns is not None and changed_ns > recorded_ns
    return _File(
        lines[:-1] if lines[-1] == "" else lines,
        changed=later if known is None else _differs(text, known),
    )


def _differs(text: str, known: tuple[str, ...]) -> bool:
    """Whether the lines of a file are others than those with these digests; blank lines at its end aside."""
    now = list(digests_of(text))
    while now and not now[-1]:
        now.pop()
    return tuple(now) != known
