"""The names of the files in a trial's folder: what the runner writes there, and what the job leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TRIALS = "trials"
"""Folder of a run that holds one folder for each trial."""
LAUNCHES = "launches"
"""Folder of a run of ``profrun wrap`` that holds one folder for each launch: its document (``launch_file``),
and ``rank<k>`` of each rank that has come."""
BUNDLE = "bundle"
"""Folder of a run that holds the in-job part, as it was shipped."""


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
        return sorted(self.raw.glob("rank*/steps.json"))

    def samples_of(self, host: str) -> Path:
        """What the sampler of a host read while the program ran (``sampling.SamplesHeader``)."""
        return self.folder / f"samples.{host}.jsonl"

    def samples(self) -> list[Path]:
        """The samples of every host on which a sampler ran."""
        return sorted(self.folder.glob("samples.*.jsonl"))
