"""The job's ``expect:`` block: guesses written down before the trace was opened, checked step by step.

A guess that failed names what was found instead. A guess that a trace cannot tell (no ops in it, no GPU) is
neither right nor wrong: ``passed`` is None and ``found`` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from profrun.analysis.compare.align import base, leaf
from profrun.analysis.compare.reading import read_trial
from profrun.analysis.compare.trial import Trial
from profrun.analysis.json import to_json
from profrun.analysis.kernel_names import CATEGORIES, MATRIX_CATEGORIES, read_kernel
from profrun.analysis.trace.data_quality import data_quality, withheld
from profrun.analysis.trace.frame import Frame, frame
from profrun.analysis.trace.steps import step_index, step_of_host
from profrun.jobs.model import Expectation

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

_RELIES = {
    "kernels_per_step": ("steps.kernels",),
    "step_ms": ("steps.dur_ns",),
    "max_share": ("kernels",),
    "bound": ("devices.utilization",),
}
"""Numbers that a guess rests on, by the names that quality findings use: withheld numbers prove nothing."""
GPU_CHECKS = ("kernels_per_step", "fused", "dtype", "max_share", "bound")
"""Guesses about GPU work: a trace without a GPU cannot tell, unless the guess is about runs without one."""
ROLE_SHARES = ("memcpy", "memset")


@dataclass(frozen=True)
class Check:
    """One guess on one trace.

    Attributes:
        number: place of the expectation in the job's list, from 0. key: which guess of it.
        expected: the guess in words. found: what the trace shows instead, or that it is so.
        passed: None where the trace cannot tell.
        trial: label of the trace.
    """

    number: int
    key: str
    expected: str
    passed: bool | None
    found: str
    trial: str
    variant: str | None = None


@dataclass(frozen=True)
class Verdict:
    """One guess over all traces that it is about: failed when it failed on any.

    ``passed`` None: no trace could tell. ``found`` is of the first trace that failed, else of the first.
    """

    number: int
    key: str
    variant: str | None
    expected: str
    passed: bool | None
    found: str
    trials: tuple[str, ...]
    failed_on: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        found: dict[str, Any] = to_json(self)
        return found


def applies(expectation: Expectation, *, variant: str | None, vendor: str, collector: str) -> bool:
    """Is this expectation about a trial of this variant, vendor and collector?

    ``timeline`` and ``counters`` mean the vendor's own collector.
    """
    wanted = expectation.collector
    if wanted in ("timeline", "counters"):
        wanted = {
            ("timeline", "nvidia"): "nsys", ("timeline", "amd"): "rocprof",
            ("counters", "nvidia"): "ncu", ("counters", "amd"): "rocprof",
        }.get((wanted, vendor), wanted)  # fmt: skip
    return (
        (expectation.variant is None or expectation.variant == variant)
        and (expectation.vendor is None or expectation.vendor == vendor)
        and (wanted is None or wanted == collector)
    )


def check_trace(
    trace: Trace,
    expectations: Sequence[Expectation],
    *,
    variant: str | None = None,
    collector: str | None = None,
    trial: Trial | None = None,
) -> list[Check]:
    """Check every expectation that is about this trace.

    Args:
        variant, collector: of the trial; the trace's own words when None.
        trial: the trace reduced already, to save the work.
    """
    job: Mapping[str, Any] = trace.meta.get("job") or {}
    variant = variant if variant is not None else job.get("variant")
    collector = collector or str(trace.meta.get("collector"))
    vendor = str(trace.meta.get("vendor"))
    mine = [
        (number, one)
        for number, one in enumerate(expectations)
        if applies(one, variant=variant, vendor=vendor, collector=collector)
    ]
    if not mine:
        return []
    asked = _Asked(trace, trial or read_trial(trace))
    found = []
    for number, one in mine:
        for key, value in one.checks.items():
            if key == "no_sync_in_step" and not value:
                continue  # false asks for nothing
            passed, text = asked.answer(key, value, one)
            label = asked.trial.conditions.label
            found.append(Check(number, key, expected_text(key, value), passed, text, label, one.variant))
    return found


def summarise(checks: Sequence[Check]) -> list[Verdict]:
    """One line a guess, over all traces, in the job's order."""
    groups: dict[tuple[int, str], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.number, check.key), []).append(check)
    found = []
    for (number, key), group in sorted(groups.items(), key=lambda item: item[0][0]):
        failed = [one for one in group if one.passed is False]
        told = [one for one in group if one.passed is not None]
        shown = (failed or told or group)[0]
        passed = None if not told else not failed
        found.append(
            Verdict(
                number, key, shown.variant, shown.expected, passed, shown.found,
                tuple(one.trial for one in told or group), tuple(one.trial for one in failed),
            )
        )  # fmt: skip
    return found


def expected_text(key: str, value: Any) -> str:
    """A guess in words."""
    if key == "kernels_per_step":
        low, high = value
        return f"{low} kernels a step" if low == high else f"{low} to {high} kernels a step"
    if key == "max_share":
        return ", ".join(f"{name} at most {100 * share:g} % of GPU time" for name, share in value.items())
    if key in ("present", "absent"):
        return f"{', '.join(value)} {key} in every step" if key == "present" else f"no {', '.join(value)}"
    words = {
        "fused": f"{', '.join(value)} not as kernels of their own" if key == "fused" else "",
        "dtype": f"matrix kernels in {value}",
        "no_sync_in_step": "no waiting for the GPU inside a step" if value else "waiting allowed",
        "step_ms": f"median step below {value} ms",
        "bound": f"bound by {value}",
    }
    return words.get(key, f"{key}: {value}")


KNOWN_TIME = 0.95
"""Share of the matrix kernels' time whose names must tell the type before a guess about it can hold."""
Answer = tuple[bool | None, str]


class _Asked:
    """A trace that guesses are held against."""

    def __init__(self, trace: Trace, trial: Trial) -> None:
        self.trace, self.trial = trace, trial
        self.units = max(1, len(trial.typical))
        self.hidden = withheld(data_quality(trace))

    def answer(self, key: str, value: Any, expectation: Expectation) -> Answer:
        """(right, wrong or None; what was found)."""
        if self.trial.conditions.collector == "none" and key != "step_ms":
            return None, "an unprofiled trial has only step times"
        no_gpu = not self.trial.atoms and not self.trial.conditions.total_gpu_ns
        if key in GPU_CHECKS and no_gpu and expectation.vendor != "none":
            return None, "no GPU work in this trace"
        for name in _RELIES.get(key, ()):
            if name in self.hidden or name.split(".")[0] in self.hidden:
                return None, f"{name} cannot be trusted in this trace; see `profrun summary`"
        checks: Mapping[str, Callable[[Any], Answer]] = {
            "kernels_per_step": self.kernels_per_step, "present": self.present, "absent": self.absent,
            "fused": self.fused, "dtype": self.dtype, "max_share": self.max_share,
            "no_sync_in_step": self.no_sync, "step_ms": self.step_ms, "bound": self.bound,
        }  # fmt: skip
        return checks[key](value)

    def kernels_per_step(self, value: tuple[int, int]) -> Answer:
        low, high = value
        counts = {unit.step: unit.kernels for unit in self.trial.units if not unit.edge}
        if not counts:
            return None, "no whole step in this trace"
        wrong = {step: count for step, count in counts.items() if not low <= count <= high}
        numbers = sorted(set(counts.values()))
        text = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        kernels = [atom for atom in self.trial.atoms if atom.category not in ("memcpy", "memset")]
        most = sorted(kernels, key=lambda atom: -atom.calls)[:3]
        names = ", ".join(f"{atom.calls / self.units:g} x {self._short(atom.name)}" for atom in most)
        if wrong:
            where = f" (step {next(iter(wrong))})" if len(numbers) > 1 else ""
            return False, f"{text} a step{where}, most often {names}"
        return True, f"{text} in each of {len(counts)} steps"

    def present(self, globs: Sequence[str]) -> Answer:
        steps, found = self._names_by_step()
        for glob in globs:
            hit: set[int] = set()
            for name, where in found.items():
                if matches(name, glob):
                    hit |= where
            if not hit:
                near = get_close_matches(glob.strip("*"), list(found), n=3, cutoff=0.4)
                alike = f"; the nearest names are {', '.join(near)}" if near else ", and no name like it"
                return False, f"no {glob}{alike}"
            if hit != steps:
                return False, f"{glob} only in {len(hit)} of {len(steps)} steps"
        return True, f"in each of {len(steps)} steps"

    def absent(self, globs: Sequence[str]) -> Answer:
        steps, found = self._names_by_step()
        for glob in globs:
            names = [name for name in found if matches(name, glob)]
            if names:
                where = set().union(*(found[name] for name in names))
                shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
                return False, f"{shown} in {len(where)} of {len(steps)} steps"
        return True, f"in none of {len(steps)} steps"

    def _names_by_step(self) -> tuple[set[int], dict[str, set[int]]]:
        """(steps, name of a kernel, call, op or copy -> the steps it was in); ranges are no such names."""
        source = frame(self.trace)
        index = step_index(source)
        host = source.of("op", "api")
        gpu = source.gpu
        if not len(index.slices):
            ids, where = np.append(host, gpu), np.zeros(len(host) + len(gpu), dtype=np.int64)
            steps = {0}
        else:
            ids = np.append(host, gpu)
            where = np.append(step_of_host(source, index, host), index.of_gpu[gpu])
            steps = self._whole(source)
        pairs = np.unique(np.stack([source.name[ids].astype(np.int64), where]), axis=1)
        found: dict[str, set[int]] = {}
        for name, step in pairs.T:
            if int(step) in steps:
                found.setdefault(source.names[int(name)], set()).add(int(step))
        return steps, found

    def _whole(self, source: Frame) -> set[int]:
        """Places in the step index of the steps that are whole."""
        index = step_index(source)
        ranks = [int(source.processes[int(process)]["rank"]) for process in index.process]
        edges = {(unit.rank, unit.step) for unit in self.trial.units if unit.edge}
        return {
            place for place, number in enumerate(index.numbers) if (ranks[place], int(number)) not in edges
        }

    def fused(self, globs: Sequence[str]) -> Answer:
        ops = any(leaf(atom) for atom in self.trial.atoms)
        held = []
        for glob in globs:
            alone = [atom for atom in self.trial.atoms if self._alone(atom.name, leaf(atom), glob, ops=ops)]
            if alone:
                count = sum(atom.calls for atom in alone) / self.units
                return False, f"{glob} runs as {self._short(alone[0].name)}, {count:g} times a step"
            held += [
                fact.short
                for fact in self.trial.facts.values()
                if any(matches(op, glob) for op in fact.fused_ops)
            ]
        inside = ", ".join(dict.fromkeys(held))
        return (
            True,
            f"inside {inside}" if inside else "no kernel is of these ops alone; none names them either",
        )

    def _alone(self, name: str, op: str | None, glob: str, *, ops: bool) -> bool:
        """Is this kernel the op's own: launched by it, or (without ops in the trace) named after it?"""
        fact = self.trial.facts.get(name)
        if fact is not None and len(fact.fused_ops) > 1:
            return False
        if fact is not None and len(fact.fused_ops) == 1 and matches(fact.fused_ops[0], glob):
            return True
        if ops:
            return op is not None and (matches(op, glob) or matches(base(op), glob))
        return fnmatchcase(name.lower(), f"*{glob.removeprefix('aten::').lower()}*")

    def dtype(self, wanted: str) -> Answer:
        time: dict[str, int] = {}
        for atom in self.trial.atoms:
            fact = self.trial.facts.get(atom.name)
            if atom.category in MATRIX_CATEGORIES and fact is not None:
                time[fact.dtype or "unknown"] = time.get(fact.dtype or "unknown", 0) + atom.ns
        known = {name: ns for name, ns in time.items() if name != "unknown"}
        if not time:
            return False, "no matrix kernel at all"
        if not known:
            return None, "the names of the matrix kernels do not tell their type"
        whole = sum(time.values())
        shares = sorted(time, key=lambda name: -time[name])
        text = ", ".join(f"{name} {100 * time[name] / whole if whole else 0:.1f} %" for name in shares)
        right: bool | None = set(known) == {wanted}
        if right and sum(known.values()) < KNOWN_TIME * whole:
            right = None  # what is known is as guessed, and too little is known
        return right, f"{text} of matrix kernel time"

    def max_share(self, limits: Mapping[str, float]) -> Answer:
        whole = sum(atom.ns for atom in self.trial.atoms)
        if not whole:
            return None, "no GPU time in whole steps"
        texts, right = [], True
        for name, limit in limits.items():
            by_category = name in CATEGORIES or name in ROLE_SHARES
            part = sum(
                atom.ns
                for atom in self.trial.atoms
                if (atom.category == name if by_category else self._kernel_matches(atom.name, name))
            )
            right &= part / whole <= limit
            texts.append(f"{name} {100 * part / whole:.1f} %")
        return right, f"{', '.join(texts)} of the GPU time of the steps"

    def _kernel_matches(self, name: str, glob: str) -> bool:
        fact = self.trial.facts.get(name)
        return matches(name, glob) or (fact is not None and matches(fact.raw, glob))

    def no_sync(self, wanted: bool) -> Answer:
        del wanted  # true, or it is not asked
        if not any(row.kind == "api" for row in self.trial.host):
            return None, "no runtime calls in this trace"
        waits = [row for row in self.trial.host if row.waits and row.calls]
        if not waits:
            return True, "no call that waits"
        text = ", ".join(
            f"{row.name} {row.calls / self.units:g} times a step ({row.cpu_ns / self.units / 1e3:.1f} us)"
            for row in waits[:3]
        )
        return False, text

    def step_ms(self, limit: float) -> Answer:
        if not self.trial.times:
            return None, "no whole step in this trace"
        value = median(self.trial.times) / 1e6
        return value < limit, f"median of {len(self.trial.times)} steps {value:.4g} ms"

    def bound(self, wanted: str) -> Answer:
        from profrun.analysis.rules.diagnose import diagnose

        found = {finding.code: finding for finding in diagnose(self.trace)}
        names = {"overhead-bound": "overhead", "compute-bound": "compute", "memory-bound": "memory"}
        told = [word for rule, word in names.items() if rule in found]
        if not told:
            return False, "nothing bounds it clearly: neither overhead, compute nor memory"
        rule = next(rule for rule, word in names.items() if word == (wanted if wanted in told else told[0]))
        return wanted in told, f"{' and '.join(told)}: {found[rule].what}"

    def _short(self, name: str) -> str:
        fact = self.trial.facts.get(name)
        return fact.short if fact else name


def matches(name: str, glob: str) -> bool:
    """Does a name match a glob: as written, normalised, or (kernels) by its short name?"""
    if fnmatchcase(name, glob):
        return True
    kernel = read_kernel(name)
    return fnmatchcase(kernel.normalised, glob) or fnmatchcase(kernel.short, glob)
