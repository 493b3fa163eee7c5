"""The known gain of each planted program: runs without profrun, with and without ``--fixed``."""

from __future__ import annotations

import json
import statistics
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from programs.improve.table import Program

from improving.slots import RunFailed, Slot, side_by_side

SAME = 1e-2
"""Largest relative difference of results that counts as none: bfloat16 has 8 bits."""


@dataclass
class Known:
    """What was measured of one program.

    Attributes:
        name: of the program; ``change``: what ``--fixed`` does.
        plain_ms, fixed_ms: the median step of each run, in order: run k of one is beside run k of the other.
        plain_mean_ms, fixed_mean_ms: the mean step; it tells more where batches come in bursts from workers.
        plain_result, fixed_result: what the last step computed; None where a program does not say.
        problem: why there are fewer runs than asked for; empty where there are not.
    """

    name: str
    change: str
    plain_ms: list[float] = field(default_factory=list)
    fixed_ms: list[float] = field(default_factory=list)
    plain_mean_ms: list[float] = field(default_factory=list)
    fixed_mean_ms: list[float] = field(default_factory=list)
    plain_result: float | None = None
    fixed_result: float | None = None
    problem: str = ""

    def add(self, line: dict[str, float], fixed: bool) -> None:
        """Keep what a run printed.

        Raises:
            LookupError: the line has no step times.
        """
        median, mean = line["median_step_ms"], line["mean_step_ms"]
        if fixed:
            self.fixed_ms.append(median)
            self.fixed_mean_ms.append(mean)
            self.fixed_result = line.get("result")
        else:
            self.plain_ms.append(median)
            self.plain_mean_ms.append(mean)
            self.plain_result = line.get("result")

    @property
    def ratios(self) -> list[float]:
        """Step time with the remedy over the step time without, of each pair of runs."""
        return [fixed / plain for plain, fixed in zip(self.plain_ms, self.fixed_ms, strict=False)]

    @property
    def mean_ratios(self) -> list[float]:
        """As ``ratios``, of the mean steps."""
        pairs = zip(self.plain_mean_ms, self.fixed_mean_ms, strict=False)
        return [fixed / plain for plain, fixed in pairs]

    @property
    def mean_ratio(self) -> float | None:
        """As ``ratio``, of the mean steps."""
        return statistics.median(self.mean_ratios) if self.mean_ratios else None

    @property
    def gains(self) -> tuple[float, float, float] | None:
        """The part of the mean step that is saved: the median, least and largest of the pairs of runs."""
        found = [1 - ratio for ratio in self.mean_ratios]
        return (statistics.median(found), min(found), max(found)) if found else None

    @property
    def ratio(self) -> float | None:
        """The median of the ratios; None without a pair."""
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def same(self) -> bool | None:
        """Whether both versions compute the same, roughly; None where they do not say."""
        if self.plain_result is None or self.fixed_result is None:
            return None
        return abs(self.plain_result - self.fixed_result) <= SAME * abs(self.plain_result)

    def json(self) -> dict[str, object]:
        """As known.json has it; the spread is the smallest and the largest ratio."""
        ratios = self.ratios
        spread = [min(ratios), max(ratios)] if ratios else None
        facts = {"ratio": self.ratio, "ratio_spread": spread, "mean_ratio": self.mean_ratio}
        return {**asdict(self), **facts, "same_result": self.same}

    def line(self) -> str:
        """As the terminal has it: the gain is the part of the step time that is saved."""
        if self.ratio is None or self.mean_ratio is None:
            return f"{self.name:24} {self.problem}"
        low, high = 1 - max(self.ratios), 1 - min(self.ratios)
        plain, fixed = statistics.median(self.plain_ms), statistics.median(self.fixed_ms)
        differs = "" if self.same else "  other result"
        mean = f"of the mean {1 - self.mean_ratio:.1%}"
        return (
            f"{self.name:24} {plain:9.3f} ms -> {fixed:9.3f} ms  gain {1 - self.ratio:6.1%} "
            f"({low:.1%} to {high:.1%}), {mean}  {self.change}{differs}  {self.problem}"
        ).rstrip()


@dataclass(frozen=True)
class Asked:
    """How the programs are measured.

    Attributes:
        out: the file that is written.
        gpus: how many programs run side by side, each on its own GPU; 0: on the CPU, one after another.
        repeats: runs of each version.
        steps: steps of a run; None: as the programs say.
        limit_s: seconds after which a run is killed.
        python: the Python that has torch.
    """

    out: Path
    gpus: int = 0
    repeats: int = 3
    steps: int | None = None
    limit_s: float = 120.0
    python: str = sys.executable


def measured(program: Program, slot: Slot, asked: Asked) -> Known:
    """Run both versions of a program in turns, and read the line that each prints."""
    known = Known(program.name, program.change)
    try:
        for _ in range(asked.repeats):
            for fixed in (False, True):
                argv = program.argv(asked.python, on_gpu=asked.gpus > 0, fixed=fixed, steps=asked.steps)
                output = slot.run(argv, program.path.parent, program.env, asked.limit_s)
                line = json.loads(output.strip().splitlines()[-1])
                known.add(line, fixed)
    except RunFailed as error:
        known.problem = str(error)
    except (ValueError, LookupError) as error:  # a run that ends well and prints no such line
        known.problem = f"printed no line with its step time: {error!r}"
    return known


def measure(programs: Sequence[Program], asked: Asked) -> list[Known]:
    """Measure programs; ``known.json`` is written again after each of them."""
    done: list[Known] = []
    writing = threading.Lock()

    def add(known: Known) -> None:
        with writing:
            done.append(known)
            print(known.line(), flush=True)
            write(done, asked)

    side_by_side(
        programs,
        asked.gpus,
        lambda program, slot: add(measured(program, slot, asked)),
        lambda program: add(Known(program.name, program.change, problem=f"needs {program.ranks} GPUs")),
    )
    return done


def read(path: Path) -> dict[str, Known]:
    """The programs of a ``known.json`` by name."""
    programs = json.loads(path.read_text(encoding="utf-8"))["programs"]
    names = [one.name for one in fields(Known)]
    return {key: Known(**{name: value[name] for name in names}) for key, value in programs.items()}


def write(done: Sequence[Known], asked: Asked) -> None:
    """Write ``known.json``: how it was measured, and the programs by name."""
    settings = {key: value for key, value in asdict(asked).items() if key not in ("out", "python")}
    programs = {known.name: known.json() for known in sorted(done, key=lambda known: known.name)}
    asked.out.write_text(json.dumps({**settings, "programs": programs}, indent=1) + "\n")
