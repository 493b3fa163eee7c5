"""Did two recordings see the same kernels? The one place that answers it.

``same_kernels`` is given the trials of two runs of one point, because a ratio of two runs that did different
work says nothing about launch blocking. ``kernels_of_both`` is given the trials of two sides, of two
profilers, say, and returns every kernel with its launches and its time on both sides.

Kernels are compared by the part of their names on which all tools agree, and by launches per typical step. A
count over whole recordings would be the simpler rule, but it calls recordings different that are not: when
one window cuts off a step or records one step more, and when ids in a name (of a compiled graph, for one)
change from run to run. Copies and fills are left out: whether a runtime copies with a kernel or with a copy
engine is no choice of the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.kernel_identity import functors, kernel_identity
from profrun.analysis.compare.side_names import side_names
from profrun.analysis.compare.sides import Side
from profrun.analysis.json import to_json
from profrun.contract.denominator import Denominator
from profrun.contract.finding import Finding

SeenBy = Literal["both", "a", "b"]
Answer = Literal["same", "different", "unknown"]


@dataclass(frozen=True)
class KernelDifference:
    """A kernel that one run launches more often per step than the other."""

    name: str
    async_calls: float
    blocking_calls: float


@dataclass(frozen=True)
class KernelAgreement:
    """The kernels of the run without launch blocking beside those of the run with it.

    Attributes:
        equal: the same kernels, as often per step; None when no trace has a kernel.
        steps: typical steps that were compared, [async, blocking].
        kernels_per_step: kernel launches per typical step, [async, blocking].
        differences: kernels that are not launched as often, by name.
    """

    equal: bool | None
    steps: tuple[int, int]
    kernels_per_step: tuple[float, float]
    differences: tuple[KernelDifference, ...]


@dataclass(frozen=True)
class SeenKernel:
    """One kernel name on both sides, per step and rank; times are ns.

    Attributes:
        name: as side a has it, normalised; b's where only b saw it. label: the same, for people.
        equal: launched as often on both sides.
    """

    name: str
    label: str
    seen_by: SeenBy
    equal: bool
    a_calls: float
    b_calls: float
    a_ns: float
    b_ns: float
    delta_ns: float


@dataclass(frozen=True)
class SeenSide:
    """One side, per step and rank; times are ns.

    Attributes:
        name: what tells the side from the other one. collector: as the job names it. tool: the profiler.
        steps: typical steps that were compared. denominator: what a step is.
        kernels, kernel_ns: launches and time of kernels. copies, copy_ns: of copies and fills.
        outside_share: of all GPU time of the recordings, the share that no whole step launched; it is not
            compared.
    """

    name: str
    labels: tuple[str, ...]
    collector: str
    tool: str
    steps: int
    denominator: Denominator
    kernels: float
    kernel_ns: float
    copies: float
    copy_ns: float
    outside_share: float


@dataclass(frozen=True)
class SeenKernels:
    """Every kernel that two sides saw.

    Attributes:
        answer: ``same``: each name is launched as often per step on both sides.
        doubts: why the answer is unknown.
        kernels: differences first, then most time first.
    """

    answer: Answer
    sides: tuple[SeenSide, SeenSide]
    kernels: tuple[SeenKernel, ...]
    doubts: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 2 unknown."""
        return {"same": 0, "different": 1, "unknown": 2}[self.answer]

    def to_json(self) -> dict[str, object]:
        """Plain JSON values: what ``profrun compare --same-kernels --json`` prints."""
        return {**to_json(self), "exit_code": self.exit_code}


@dataclass
class _Seen:
    """Launches and time of one kernel over all typical samples of a side."""

    name: str = ""
    calls: int = 0
    ns: int = 0


def same_kernels(asynchronous: Sequence[ComparedTrial], blocking: Sequence[ComparedTrial]) -> KernelAgreement:
    """Compare the kernels per typical step of trials without and with launch blocking.

    Args:
        asynchronous, blocking: repeats of one variant and collector, at least one each.
    """
    found = kernels_of_both(asynchronous, blocking)
    a, b = found.sides
    return KernelAgreement(
        equal=all(one.equal for one in found.kernels) if found.kernels else None,
        steps=(a.steps, b.steps),
        kernels_per_step=(a.kernels, b.kernels),
        differences=tuple(
            KernelDifference(one.name, one.a_calls, one.b_calls)
            for one in sorted(found.kernels, key=lambda one: one.name)
            if not one.equal
        ),
    )


def kernels_of_both(a: Sequence[ComparedTrial], b: Sequence[ComparedTrial]) -> SeenKernels:
    """Every kernel of two sides with its launches and its time on both, and whether they are the same.

    Args:
        a, b: trials of each side, at least one each.
    """
    sides = Side(a), Side(b)
    names = side_names(a, b)
    kernels = _labelled(_kernels(*sides))
    infos = _side(names[0], sides[0]), _side(names[1], sides[1])
    doubts = tuple(_doubts(sides, infos, kernels))
    equal = all(one.equal for one in kernels)
    return SeenKernels(
        "unknown" if doubts else "same" if equal else "different", infos, tuple(kernels), doubts
    )


def _kernels(a: Side, b: Side) -> Iterator[SeenKernel]:
    left, right = _by_identity(a), _by_identity(b)
    nothing = _Seen()
    for key in {**left, **right}:
        one, two = left.get(key, nothing), right.get(key, nothing)
        facts = a.facts if one.name else b.facts
        name = one.name or two.name
        times = one.ns / a.samples, two.ns / b.samples
        yield SeenKernel(
            name=name,
            label=facts[name].short if name in facts else name,
            seen_by="both" if one.calls and two.calls else "a" if one.calls else "b",
            equal=one.calls * b.samples == two.calls * a.samples,  # whole numbers: nothing is rounded
            a_calls=one.calls / a.samples,
            b_calls=two.calls / b.samples,
            a_ns=times[0],
            b_ns=times[1],
            delta_ns=times[1] - times[0],
        )


def _labelled(kernels: Iterable[SeenKernel]) -> list[SeenKernel]:
    """The kernels in order; a label that several share gets what tells them apart."""
    found = sorted(kernels, key=lambda one: (one.equal, -max(one.a_ns, one.b_ns), one.name))
    counts = Counter(one.label for one in found)
    return [one if counts[one.label] == 1 else replace(one, label=_longer_label(one)) for one in found]


def _longer_label(one: SeenKernel) -> str:
    words = [word for word in functors(one.name) if word != one.label]
    return f"{one.label} of {', '.join(words)}" if words else one.name


def _by_identity(side: Side) -> dict[str, _Seen]:
    found: dict[str, _Seen] = {}
    for group in side.kernel_groups:
        if group.is_kernel_work:
            one = found.setdefault(kernel_identity(group.name), _Seen(group.name))
            one.calls += group.calls
            one.ns += group.ns
    return found


def _side(name: str, side: Side) -> SeenSide:
    conditions = [trial.conditions for trial in side.trials]
    kernels = [group for group in side.kernel_groups if group.is_kernel_work]
    copies = [group for group in side.kernel_groups if not group.is_kernel_work]
    whole = sum(one.total_gpu_ns for one in conditions)
    return SeenSide(
        name=name,
        labels=tuple(one.label for one in conditions),
        collector=conditions[0].collector,
        tool=conditions[0].tool,
        steps=side.samples,
        denominator=side.denominator,
        kernels=sum(group.calls for group in kernels) / side.samples,
        kernel_ns=sum(group.ns for group in kernels) / side.samples,
        copies=sum(group.calls for group in copies) / side.samples,
        copy_ns=sum(group.ns for group in copies) / side.samples,
        outside_share=sum(one.outside_ns for one in conditions) / whole if whole else 0.0,
    )


def _doubts(
    sides: tuple[Side, Side], infos: tuple[SeenSide, SeenSide], kernels: Sequence[SeenKernel]
) -> Iterator[Finding]:
    """Why nothing can be said about the kernels of two sides."""
    trials = [trial for side in sides for trial in side.trials]
    prints = [{trial.conditions.fingerprint for trial in side.trials} for side in sides]
    if prints[0] & prints[1]:
        yield Finding("same_recording", "critical", "the same recording is on both sides", fix="name another")
    for letter, info in zip("ab", infos, strict=True):
        if not info.kernels:
            whole = info.denominator.of
            yield Finding("no_kernels", "critical", f"side {letter} has no kernel in a whole {whole}")
    for letter, info in zip("ab", infos, strict=True):
        if info.denominator.cut_ns is not None:
            text = f"side {letter} was recorded for {info.denominator.the} only"
            yield Finding("cut", "critical", text, fix="raise `max_seconds` and `max_size` of the schedule")
    if infos[0].denominator.of != infos[1].denominator.of:
        letter, odd = ("b", infos[1]) if infos[0].denominator.several else ("a", infos[0])
        text = f"side {letter} has no steps: its kernels are those of {odd.denominator.the}"
        yield Finding("no_steps", "critical", text, fix="mark the steps with `profrun.step()` on both sides")
    if not all(one.equal for one in kernels):
        for trial in trials:
            if not trial.work.steady:
                text = f"the steps of {trial.conditions.label} do not all launch the same kernels"
                why = "the difference may be that other steps were recorded"
                yield Finding("unsteady", "critical", text, why, "record the same steps, or more of them")
    for trial in trials:
        for code, text in trial.conditions.doubts:
            yield Finding(code, "critical", f"{trial.conditions.label}: {text}")
