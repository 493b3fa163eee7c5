"""The names of the files in a trial's folder: what the runner writes there, and what the job leaves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TRIALS = "trials"
"""Folder of a run that holds one folder for each trial."""
LAUNCHES = "launches"
"""Folder of a run of ``profrun wrap`` that holds one folder for each launch: its document (``launch_file``),
and ``rank<k>`` of each rank that has come."""
BUNDLE = "bundle"
"""Folder of a run that holds the in-job part, as it was shipped."""


_LONGEST_NAME = 255
"""Bytes of the name of a file, on every usual file system."""


class OutsideError(ValueError):
    """A path in a document leads out of the folder that it belongs to."""


def found_in(folder: Path, pattern: str) -> list[Path]:
    """What matches a pattern inside of a folder, sorted; nothing where the folder is not there.

    A trial's files are moved to ``attempts`` when it starts again, also while another process reads them.
    In Python 3.10 and 3.11, ``Path.glob`` raises an error then, though not for a folder that is missing from
    the beginning (https://docs.python.org/3/library/pathlib.html#pathlib.Path.glob).
    """
    try:
        return sorted(folder.glob(pattern))
    except FileNotFoundError:
        return []


def inside(folder: Path, named: str) -> Path:
    """The file or folder that a document names, which may have been written by anybody.

    Args:
        folder: what the path is relative to.
        named: the path, as the document has it.

    Raises:
        OutsideError: it is absolute, leads out of the folder by ``..`` or by a symbolic link, or is no path.
    """
    parts = Path(named)
    absolute = parts.is_absolute() or bool(parts.drive)
    if not named or absolute or not all(part != ".." and _can_be_a_name(part) for part in parts.parts):
        raise OutsideError(f"{named[:200]!r} is no path inside of {folder}")
    found = folder / parts
    real, home = os.path.realpath(found), os.path.realpath(folder)
    if real != home and not real.startswith(home.rstrip(os.sep) + os.sep):
        raise OutsideError(f"{named[:200]!r} is a symbolic link out of {folder}")
    return found


def is_plain_name(name: str) -> bool:
    """Whether this is the name of a file or folder alone, without a path, that can be printed."""
    plain = Path(name).name == name and name not in ("", ".", "..") and name.isprintable()
    return plain and _can_be_a_name(name)


def _can_be_a_name(part: str) -> bool:
    """Whether the system can look up a file of this name: others raise errors of many kinds."""
    try:
        return len(os.fsencode(part)) <= _LONGEST_NAME and "\0" not in part
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True)
class TrialPaths:
    """A trial's folder, ``<run>/trials/<trial>``, and the names in it."""

    folder: Path

    @property
    def command(self) -> Path:
        """What the wrapper is told (``command.Command``)."""
        return self.folder / "command.json"

    @property
    def exit(self) -> Path:
        """How the trial ended (``exit.Exit``); the wrapper writes it last."""
        return self.folder / "exit.json"

    @property
    def provenance(self) -> Path:
        """On what it ran (``provenance.Provenance``)."""
        return self.folder / "provenance.json"

    @property
    def phase(self) -> Path:
        """What the wrapper does now; there only while it runs."""
        return self.folder / "phase"

    @property
    def cancel(self) -> Path:
        """Written before any signal, so that the wrapper can tell a cancel from a time limit."""
        return self.folder / "cancel"

    @property
    def live(self) -> Path:
        """Locked as long as a process of the trial lives (local backend)."""
        return self.folder / "live"

    @property
    def stdout(self) -> Path:
        """What the program printed; of further ranks: ``stdout.rank<k>.log``."""
        return self.folder / "stdout.log"

    @property
    def stderr(self) -> Path:
        """What the program printed on stderr; of further ranks: ``stderr.rank<k>.log``."""
        return self.folder / "stderr.log"

    @property
    def wrapper_log(self) -> Path:
        """What the wrapper itself printed (local backend)."""
        return self.folder / "wrapper.log"

    @property
    def raw(self) -> Path:
        """The profiler's own files, one folder for each rank."""
        return self.folder / "raw"

    @property
    def hook(self) -> Path:
        """What the hook is told, and what each process that it is in says about itself."""
        return self.folder / "hook"

    def answer(self, rank: int) -> Path:
        """How one rank ended (``exit.Exit``), as its wrapper says, where the trial has several wrappers."""
        return self.hook / f"exit.rank{rank}.json"

    def rank(self, number: int) -> Path:
        """The profiler's files and ``steps.json`` of one rank."""
        return self.raw / f"rank{number}"

    def results(self, number: int) -> Path:
        """What the program computed first in one rank (``results.ResultsFile``), if the job asks."""
        return self.rank(number) / "results.json"

    @property
    def trace(self) -> Path:
        """The normalised trace."""
        return self.folder / "trace"

    @property
    def attempts(self) -> Path:
        """Earlier attempts, each moved whole into a folder named by its number."""
        return self.folder / "attempts"

    def steps(self) -> list[Path]:
        """The ``steps.json`` of every rank that wrote one (``steps.StepsFile``)."""
        return found_in(self.raw, "rank*/steps.json")

    def samples_of(self, host: str) -> Path:
        """What the sampler of a host read while the program ran (``sampling.SamplesHeader``)."""
        return self.folder / f"samples.{host}.jsonl"

    def samples(self) -> list[Path]:
        """The samples of every host on which a sampler ran."""
        return found_in(self.folder, "samples.*.jsonl")
