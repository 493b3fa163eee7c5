"""The page of what ``profrun improve`` gave on the programs of this folder: docs/improve-measured.md.

It is made of documents of ``profrun improve --json``, ``MACHINE/PROGRAM.json``, and of the known gains
(``known.json`` of ``improving.known``), ``known-MACHINE.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from programs.improve.table import CLEAN, PLANTED, REAL, Program

from improving import known
from profrun.analysis.rules.measured_docs import read_document
from profrun.contract.units import counted, elapsed_text, percent_text, signed_percent_text, time_text
from profrun.store.improvement import ExperimentResult, Improvement

CLOSE = 0.2
"""The proven gain of a planted stall may differ from the known one by this part of it."""
CALLED = ("proven", "not the same", "slower")
"""States that say that an experiment made a difference."""


@dataclass(frozen=True)
class Measured:
    """An improvement of one program on one machine.

    Attributes:
        program: of the table.
        found: what was tried.
        known: its known gain; None where that was not measured.
    """

    program: Program
    found: Improvement
    known: known.Known | None = None

    @property
    def machine(self) -> str:
        """The GPUs, each once, with their number where there are several; else the CPU."""
        several = f"{len(self.found.gpus)} x " if len(self.found.gpus) > 1 else ""
        return several + self.kind

    @property
    def kind(self) -> str:
        """The same without the number."""
        return ", ".join(dict.fromkeys(self.found.gpus)) or "CPU"

    @property
    def remedy(self) -> ExperimentResult | None:
        """The experiment that cures the planted stall: the best of those that are known to."""
        cures = (self.program.change, *self.program.others)
        tried = [one for one in self.found.settled if one.changes and one.changes[0] in cures]
        return min(
            tried, key=lambda one: (one.state != "proven", one.changes != cures[:1], one.name), default=None
        )


def read(folder: Path, programs: Sequence[Program]) -> list[Measured]:
    """The documents about these programs, machine after machine, in the order of the programs."""
    found = []
    for machine in sorted(one for one in folder.iterdir() if one.is_dir()):
        beside = folder / f"known-{machine.name}.json"
        gains: Mapping[str, known.Known] = known.read(beside) if beside.exists() else {}
        for program in programs:
            path = machine / f"{program.name}.json"
            if path.exists():
                found.append(Measured(program, read_document(path), gains.get(program.name)))
    return found


def page(folder: Path) -> str:
    """The page, Markdown. Sections without a document are left out."""
    parts = [_HEAD]
    for section, programs in ((_planted, PLANTED), (_clean, CLEAN), (_real, REAL)):
        rows = read(folder, programs)
        parts += [section(rows)] if rows else []
    return "\n".join(parts)


def _planted(rows: Sequence[Measured]) -> str:
    lines = [_planted_row(one) for one in rows]
    proven = [one for one in rows if one.remedy is not None and one.remedy.state == "proven"]
    apart = [abs(off) for one in proven if (off := _off(one)) is not None]
    near = sum(one <= CLOSE for one in apart)
    count = (
        f"The remedy is proven in {len(proven)} of {counted(len(rows), 'program')}. Of {len(apart)} of these "
        f"the known gain was measured; the gain of {near} is within {percent_text(CLOSE)} of it.\n"
    )
    return _PLANTED + "".join(lines) + "\n" + count + "".join(_missing(rows))


def _missing(rows: Sequence[Measured]) -> Iterator[str]:
    """A sentence for each kind of machine without some of the programs that have their stall there."""
    for kind in dict.fromkeys(one.kind for one in rows):
        mine = [one for one in rows if one.kind == kind]
        seen = {one.program.name for one in mine}
        gpu = bool(mine[0].found.gpus)
        left = [one.name for one in PLANTED if one.name not in seen and (gpu or one.on_cpu)]
        if left:
            yield f"\nNot measured on {kind}, or changed since: {', '.join(left)}.\n"


def _planted_row(one: Measured) -> str:
    gains = None if one.known is None else one.known.gains
    told = "-" if gains is None else _range(*gains)
    remedy, off = one.remedy, _off(one)
    if remedy is None:
        return _row(one, f"`{one.program.change}`", "no", told, "-", "-", "not asked for")
    asked = ", ".join(f"[{promise.rule}](rules/{promise.rule}.md)" for promise in remedy.promises) or "no"
    apart = "-" if off is None else signed_percent_text(off)
    return _row(one, f"`{' '.join(remedy.changes)}`", asked, told, _gain(remedy), apart, remedy.state)


def _row(one: Measured, *cells: object) -> str:
    """A row of a table, which begins with the program and the machine."""
    return f"| {' | '.join(map(str, (one.program.name, one.machine, *cells)))} |\n"


def _range(value: float, low: float, high: float) -> str:
    return f"{percent_text(value)} ({percent_text(low)} to {percent_text(high)})"


def _off(one: Measured) -> float | None:
    """By which part of the known gain the measured one is larger; None where one of them is not known, or
    another change than the known one was the best."""
    gains = None if one.known is None else one.known.gains
    remedy = one.remedy
    if gains is None or remedy is None or remedy.gain is None or remedy.changes != (one.program.change,):
        return None
    return remedy.gain / gains[0] - 1


def _gain(one: ExperimentResult) -> str:
    """A gain with its interval; the part of the step that is saved."""
    if one.gain is None or one.interval is None:
        return "-"
    return _range(one.gain, 1 - one.interval[1], 1 - one.interval[0])


def _clean(rows: Sequence[Measured]) -> str:
    text = _CLEAN
    tried = called = 0
    for one in rows:
        told = [row for row in one.found.experiments if row.ratio is not None]
        wrong = [row for row in told if row.state in CALLED]
        tried, called = tried + len(told), called + len(wrong)
        largest = max((abs(row.ratio - 1) for row in told if row.ratio is not None), default=None)
        far = "-" if largest is None else percent_text(largest)
        text += _row(one, time_text(one.found.step_ns), len(told), len(wrong), far)
    share = percent_text(called / tried if tried else None)
    return text + (
        f"\n{counted(tried, 'experiment')} that change nothing, in {counted(len(rows), 'improvement')}: "
        f"{called} called faster or slower, {share}.\n"
    )


def _real(rows: Sequence[Measured]) -> str:
    return _REAL + "".join(_real_row(one) for one in rows)


def _real_row(one: Measured) -> str:
    together = one.found.together
    kept = gain = after = "-"
    if together is not None and together.state == "proven":
        kept = ", ".join(f"`{text}`" for text in together.changes)
        gain, after = _gain(together), time_text(together.step_ns)
    others = ", ".join(
        f"`{' '.join(row.changes) or row.name}` {row.state}"
        for row in one.found.settled
        if row.state != "proven" and row.state != "not tried"
    )
    before, took = time_text(one.found.step_ns), elapsed_text(one.found.spent_s)
    return _row(one, before, after, gain, kept, others or "-", took)


_HEAD = """<!-- made by `python bench/improve.py page docs/improve-measured.md tests/data/improve` -->
# What `profrun improve` gave on programs with a known answer

The programs are in `bench/programs/improve`, and `python bench/improve.py` measures all of it again. This
page is made of the documents in `tests/data/improve`. A gain is the part of the step that is saved.
[rules-measured.md](rules-measured.md) has what findings promised.
"""
_PLANTED = """## Programs with a planted stall

Each program has one stall and an option that cures it. *Known* is the gain of that option without profrun:
the median of pairs of runs, and the least and largest of them. *Measured* is what `profrun improve` says of
the change that cures the stall, with its 95 % interval: that of the last stage where the change was kept
alone. *Asked by* are the findings that asked for it. *Off* is by which part of the known gain the measured
one is larger.

| program | machine | change | asked by | known | measured | off | verdict |
|---|---|---|---|---:|---:|---:|---|
"""
_CLEAN = """## Programs without a stall: A/A experiments

Each experiment changes nothing, so none may be called faster or slower. `profrun improve` promises that at
most 5 % of all improvements say a wrong word. *Largest* is the largest difference that was measured. It is
large where the cores were busy with other work, too (the test suite, workers of a loader). The intervals are
then wide as well, so no experiment is called faster or slower.

| program | machine | step | experiments | called | largest |
|---|---|---:|---:|---:|---:|
"""
_REAL = """## Programs as people write them

*Kept* is what helped together on new trials. *Time* is that of all stages.

| program | machine | step | after | gain | kept | others that were tried | time |
|---|---|---:|---:|---:|---|---|---:|
"""
