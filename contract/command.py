"""``command.json``: what the runner tells the wrapper of one trial. Paths are as the job sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from .finding import Finding
from .git_state import GitState
from .options import Flag, Whole, Word, option
from .results import Results
from .schedule import Schedule

FORMAT = 2

OUTPUT_BYTES = 1 << 30
"""How much of each of stdout and stderr is kept where the job does not say."""

NODE_VARIABLE = "PROFRUN_NODE"
"""Tells the wrapper the name of its node where the cluster has no variable of its own for it."""

Vendor = Literal["auto", "nvidia", "amd", "none"]
"""Whose GPUs a trial sees; ``auto``: the wrapper finds out inside the job."""

StepsFrom = Literal["auto", "explicit", "optimizer", "module", "compiled", "jit", "graph", "loader", "off"]
"""How steps are found: ``auto`` takes the first of the others that the program offers; ``off``: not at
all."""


@dataclass(frozen=True)
class Ranges:
    """Automatic ranges.

    Attributes:
        modules: nn.Modules get ranges down to this depth; 0: none do; None: as the profiler has it
            (``Profiler.module_depth``), round the forward only.
        steps: how steps are found.
        lines: a trial per variant, the mapping, finds out from which line and module each kernel comes.
    """

    modules: int | None = option(
        Whole(0, 64),
        "Depth of nn.Modules that get ranges: the root has 0, ModuleLists do not count; 0: none.",
        "torch: 3, the forward only; others: 0",
        null=True,
    )
    steps: StepsFrom = option(
        Word(get_args(StepsFrom)),
        "`auto`: `profrun.step()`, else the optimizer's step, else the next sign in docs/in-job.md.",
        value="auto",
    )

    lines: bool = option(
        Flag(),
        "One more trial per variant, the `mapping`, finds the line and module of each kernel.",
        value=False,
    )

    @property
    def whole(self) -> bool:
        """Whether no step is looked for: the run is one step, recorded as a whole."""
        return self.steps == "off"


@dataclass(frozen=True)
class ImageUsed:
    """The container image of a trial; both None where none is used."""

    reference: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Command:
    """One trial, as the wrapper is told.

    Attributes:
        trial: id of the trial, the name of its folder.
        run, job, variant, values, repeat: which trial this is; ``values`` fill the variant's placeholders.
        collector: the collector as the job names it: ``timeline`` stays ``timeline``.
        profiler: the profiler that the collector stands for; None while only the job can know the vendor.
        argv: the user's command.
        cwd: working directory of the command.
        env: variables to set.
        blocking: launches wait for their kernels.
        options: the profiler's options. While ``profiler`` is None: one block for each profiler that the
            collector may become.
        ranks: processes of the trial in total.
        recorded: the ranks that the profiler records, the others only time their steps; None: all.
        scratch: folder on a disk of the node in which profilers record, e.g. ``$SLURM_TMPDIR``; None: they
            write into the trial's folder.
        timeout_s, grace_s: seconds until the trial is ended, and then until it is killed.
        patience_s: seconds without a sign of life after which the wrapper of another rank counts as dead.
        output_bytes: about how many bytes of each of stdout and stderr are kept.
        echo: what the program prints is also copied to the wrapper's own streams, for engines that show them.
        attempt: counts the executions of this trial, from 1.
        changes: what is changed in the program (``contract.changes``); their variables are in ``env``. None:
            no variant of the job has changes. A variant without any, beside others that have some, loads the
            same code: what a process has loaded moves its memory, and steps of 1.5 ms differed by 15 %.
        results: which values that the program computes are kept; None: none.
        sample: samples of the GPUs and the host per second (``sampling``); 0: none.
        findings: what the runner has to say of the trial; the wrapper keeps it among the warnings.
        secrets: names of variables whose values are never written down.
        git: the commit of the code, as seen where the run was submitted.
        format: number of this document's format.
    """

    trial: str
    run: str
    job: str
    variant: str
    collector: str
    argv: tuple[str, ...]
    cwd: str
    values: dict[str, object] = field(default_factory=dict)
    repeat: int = 1
    profiler: str | None = None
    vendor: Vendor = "auto"
    blocking: bool = False
    env: dict[str, str] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
    ranges: Ranges = field(default_factory=Ranges)
    options: dict[str, object] = field(default_factory=dict)
    ranks: int = 1
    recorded: tuple[int, ...] | None = None
    scratch: str | None = None
    timeout_s: float | None = None
    grace_s: float = 60.0
    patience_s: float = 120.0
    output_bytes: int = OUTPUT_BYTES
    echo: bool = True
    attempt: int = 1
    sample: float = 10.0  # sampling.DEFAULT_RATE, which every Python process of a job would load
    findings: tuple[Finding, ...] = ()
    secrets: tuple[str, ...] = ()
    changes: tuple[str, ...] | None = None
    results: Results | None = None
    image: ImageUsed = field(default_factory=ImageUsed)
    git: GitState = field(default_factory=GitState)
    format: int = FORMAT
