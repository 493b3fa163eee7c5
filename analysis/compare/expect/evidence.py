"""A trace as guesses are checked on it: ``Evidence`` is made from a trace and its trial."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.kernel_names import read_kernel
from profrun.analysis.trace.frame import Frame, frame
from profrun.analysis.trace.steps import step_index, step_of_host

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class Evidence:
    """A trace, and the same trace reduced to a trial."""

    trace: Trace
    trial: ComparedTrial

    @property
    def samples(self) -> int:
        """Number of typical samples, at least 1: counts of calls are divided by it."""
        return self.trial.typical_count

    def short_name(self, kernel: str) -> str:
        """What a person calls a kernel, by its normalised name."""
        fact = self.trial.facts.get(kernel)
        return fact.short if fact else kernel

    @cached_property
    def names_by_step(self) -> tuple[set[int], dict[str, set[int]]]:
        """(whole steps, name of a kernel, call, op or copy -> the whole steps that it was in).

        Steps are places in the step index; without steps the recording is step 0. Names of ranges are left
        out.
        """
        source = frame(self.trace)
        index = step_index(source)
        host, gpu = source.of("op", "api"), source.gpu
        ids = np.append(host, gpu)
        if len(index.slices):
            where = np.append(step_of_host(source, index, host), index.of_gpu[gpu])
            steps = self._whole_steps(source)
        else:
            where, steps = np.zeros(len(ids), dtype=np.int64), {0}
        pairs = np.unique(np.stack([source.name[ids].astype(np.int64), where]), axis=1)
        found: dict[str, set[int]] = {}
        for name, step in pairs.T:
            if int(step) in steps:
                found.setdefault(source.names[int(name)], set()).add(int(step))
        return steps, found

    def _whole_steps(self, source: Frame) -> set[int]:
        """Places in the step index of the steps that are whole."""
        index = step_index(source)
        ranks = [int(source.processes[int(process)]["rank"]) for process in index.process]
        edges = {(one.rank, one.step) for one in self.trial.samples if one.edge}
        return {
            place for place, number in enumerate(index.numbers) if (ranks[place], int(number)) not in edges
        }


def matches(name: str, glob: str) -> bool:
    """Does a name match a glob: as written, normalised, or (of a kernel) by its short name?"""
    if fnmatchcase(name, glob):
        return True
    kernel = read_kernel(name)
    return fnmatchcase(kernel.normalised, glob) or fnmatchcase(kernel.short, glob)
