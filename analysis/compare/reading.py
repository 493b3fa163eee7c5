"""From a trace to a ``ComparedTrial``: ``read_trial`` puts together what the other modules read.

GPU work counts for the step that launched it; only whole steps that are no outliers are summed up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import ComparedTrial, StepWork
from profrun.analysis.compare.host_ops import host_ops
from profrun.analysis.compare.kernel_facts import kernel_facts
from profrun.analysis.compare.kernel_groups import (
    kernel_groups,
    kernel_series,
    normalised_names,
    outside_by_category,
)
from profrun.analysis.compare.matrix_rates import matrix_rates
from profrun.analysis.compare.place_work import places
from profrun.analysis.compare.recording_conditions import recording_conditions
from profrun.analysis.compare.step_samples import step_samples
from profrun.analysis.compare.step_work import work_of_steps
from profrun.analysis.counted_steps import Phase
from profrun.analysis.trace.energy import step_energy
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.memory import memory
from profrun.analysis.trace.runtime_calls import is_graph_launch
from profrun.analysis.trace.steadiness import steadiness
from profrun.analysis.trace.steps import step_index
from profrun.contract.provenance import Provenance

if TYPE_CHECKING:
    from profrun.analysis.trace.addresses import Addresses
    from profrun.traces.trace import Trace


def in_phase(trial: ComparedTrial, trace: Trace, phase: Phase) -> ComparedTrial:
    """A trial without a profiler with its steps of another phase; others as they are.

    Its energy and its state stay those of the phase with which it was read.
    """
    if trial.conditions.profiled or trial.phase == phase:
        return trial
    source = frame(trace)
    found = step_samples(source, step_index(source), trace, phase)
    return replace(trial, samples=found.kept, phase=found.phase)


def work_of(trace: Trace) -> StepWork:
    """The ``work`` of ``read_trial``, without the rest."""
    source = frame(trace)
    index = step_index(source)
    found = step_samples(source, index, trace, "steady")
    return work_of_steps(trace, source, index, found.typical, found.of_slice)


def read_trial(
    trace: Trace,
    *,
    label: str | None = None,
    provenance: Provenance | None = None,
    phase: Phase = "steady",
    mapped: Addresses | None = None,
) -> ComparedTrial:
    """Reduce a trace to what a comparison needs.

    Args:
        label: name to show; the trial's or the folder's when None.
        provenance: of the trial, for clocks, throttling and software.
        phase: which steps count of a trial without a profiler.
        mapped: the addresses of its GPU work, where rows by line or module are wanted.
    """
    source = frame(trace)
    index = step_index(source)
    found = step_samples(source, index, trace, phase)
    sample_of, keep = found.of_slice, found.typical
    gpu = source.gpu[(sample_of[source.gpu] >= 0) & keep[sample_of[source.gpu]]]
    names = normalised_names(source)
    facts = kernel_facts(trace, source, gpu, names)
    calls = np.unique(source.launch[gpu])
    calls = calls[calls >= 0]
    graphs = source.named(calls, is_graph_launch)
    by_graph = gpu[np.isin(source.launch[gpu], calls[graphs])]
    called = gpu[(source.launch[gpu] >= 0) & source.is_kind(source.launch[gpu], "api")]
    latency = source.ts[called] - source.ts[source.launch[called]]
    energy = step_energy(trace, phase)
    peaks = [row.peak_bytes for row in memory(trace) if row.device is not None]
    return ComparedTrial(
        conditions=recording_conditions(trace, source, index, sample_of, label=label, provenance=provenance),
        samples=found.kept,
        kernel_groups=kernel_groups(trace, source, gpu, names, facts),
        facts=facts,
        series=kernel_series(source, gpu, names, sample_of, keep),
        host_ops=host_ops(source, index, keep),
        work=work_of_steps(trace, source, index, keep, sample_of),
        rates=matrix_rates(trace),
        launch_calls=len(calls),
        launch_ns=int(source.durs(calls).sum()),
        latency_ns=float(np.median(latency)) if len(latency) else None,
        graph_launches=int(graphs.sum()),
        graph_ns=int(source.durs(by_graph).sum()),
        streams=len(np.unique(source.track[gpu])),
        memory_peak=max(peaks, default=None),
        energy_j=energy.joules if energy else None,
        energy_note=energy.why if energy else None,
        outside=outside_by_category(trace, source, sample_of),
        phase=found.phase,
        state=_state(trace) if found.phase == "steady" else (),
        places=places(source, gpu, names, mapped, sample_of, keep) if mapped is not None else None,
    )


def _state(trace: Trace) -> tuple[str, ...]:
    """Codes of what kept the machine in the state of the steady phase, sorted; empty where nothing tells."""
    found = steadiness(trace)
    if found is None or found.steady is None:
        return ()
    return tuple(sorted({cause.code for cause in found.phases[found.steady].why}))
