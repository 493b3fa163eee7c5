"""A trace as guesses are checked on it: ``Evidence`` is made from a trace and its trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.kernel_names import read_kernel
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.steps import step_index, step_of_host
from profrun.contract.denominator import STEP, Denominator
from profrun.traces.schema import SLICE_KINDS

if TYPE_CHECKING:
    from profrun.analysis.rules.finding import RuleFinding
    from profrun.traces.trace import Trace


GPU_KINDS = ("kernel", "memcpy", "memset")


@dataclass(frozen=True)
class Calls:
    """How often one name occurs.

    Attributes:
        name: of a kernel, copy or fill (``on_gpu``), or of an op, range or runtime call.
        kind: of the slice: kernel, memcpy, memset, op, range or api.
        by_step: whole step -> how often, in steps that have it.
    """

    name: str
    kind: str
    on_gpu: bool
    by_step: Mapping[int, int]


@dataclass(frozen=True)
class Evidence:
    """A trace, and the same trace reduced to a trial.

    Attributes:
        findings: what the diagnosis of the trace finds: rule -> finding. Called at the first question.
        steps: steps that the hook saw in the recorded window, for a trace that has none itself; None where
            that is not known.
        steps_of: whether these are steps, or the one run of a program without steps.
    """

    trace: Trace
    trial: ComparedTrial
    findings: Callable[[], Mapping[str, RuleFinding]]
    steps: int | None = None
    steps_of: Denominator = STEP

    @property
    def of(self) -> Denominator:
        """What counts and times are of: a step, the run or the recording."""
        return self.trial.conditions.denominator

    @property
    def samples(self) -> int:
        """Number of typical samples, at least 1: counts of calls are divided by it."""
        return self.trial.typical_count

    @property
    def no_gpu(self) -> str:
        """Why nothing can be said of GPU work; empty where the recording has some."""
        if self.trial.kernel_groups or self.trial.conditions.total_gpu_ns:
            return ""
        return "no GPU" if self.trial.conditions.vendor == "none" else "no GPU work in this trace"

    def short_name(self, kernel: str) -> str:
        """What a person calls a kernel, by its normalised name."""
        fact = self.trial.facts.get(kernel)
        return fact.short if fact else kernel

    @property
    def names_by_step(self) -> tuple[set[int], dict[str, set[int]]]:
        """(whole steps, name of a kernel, call, op or copy -> the whole steps that it was in).

        Steps are places in the step index; without steps the recording is step 0. Names of ranges are left
        out.
        """
        found: dict[str, set[int]] = {}
        for one in self.calls:
            if one.kind != "range":
                found.setdefault(one.name, set()).update(one.by_step)
        return self.whole_steps, found

    @cached_property
    def calls(self) -> list[Calls]:
        """How often each name occurs in the whole steps: GPU work by the step that launched it."""
        source = frame(self.trace)
        index = step_index(source)
        host, gpu = source.of("op", "api", "range"), source.gpu
        host = host[~source.on_gpu[source.track[host]]]
        ids = np.append(host, gpu)
        if len(index.slices):
            where = np.append(step_of_host(source, index, host), index.of_gpu[gpu])
        else:
            where = np.zeros(len(ids), dtype=np.int64)
        keys = np.stack([source.name[ids].astype(np.int64), source.kind[ids].astype(np.int64), where])
        rows, counts = np.unique(keys, axis=1, return_counts=True)
        found: dict[tuple[int, int], dict[int, int]] = {}
        for (name, kind, step), count in zip(rows.T.tolist(), counts.tolist(), strict=True):
            if step in self.whole_steps:
                found.setdefault((name, kind), {})[step] = count
        return [
            Calls(source.names[name], SLICE_KINDS[kind], SLICE_KINDS[kind] in GPU_KINDS, by_step)
            for (name, kind), by_step in found.items()
        ]

    @cached_property
    def whole_steps(self) -> set[int]:
        """Places in the step index of the steps that are whole; 0 for a recording without steps."""
        source = frame(self.trace)
        index = step_index(source)
        if not len(index.slices):
            return {0}
        ranks = [int(source.processes[int(process)]["rank"]) for process in index.process]
        whole = {(one.rank, one.step) for one in self.trial.samples if not one.edge}
        return {place for place, number in enumerate(index.numbers) if (ranks[place], int(number)) in whole}


def matches(name: str, glob: str) -> bool:
    """Does a name match a glob: as written, normalised, or (of a kernel) by its short name?"""
    if fnmatchcase(name, glob):
        return True
    kernel = read_kernel(name)
    return fnmatchcase(kernel.normalised, glob) or fnmatchcase(kernel.short, glob)
