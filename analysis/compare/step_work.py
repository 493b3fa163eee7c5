"""How much work one step does, from recorded shapes: two sides must do the same before times are compared.

``work_of_steps`` is given a trace and its steps and returns a ``StepWork``.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.compare.compared_trial import StepWork
from profrun.analysis.trace.columns import Ints
from profrun.analysis.trace.flops import parse_list
from profrun.analysis.trace.frame import Frame, Mask
from profrun.analysis.trace.matrix_work import matrix_work
from profrun.analysis.trace.steps import StepIndex, step_of_host

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


def work_of_steps(trace: Trace, source: Frame, index: StepIndex, keep: Mask, sample_of: Ints) -> StepWork:
    """Work of a typical step of one rank.

    Args:
        keep: True for each typical sample, shape (samples,).
        sample_of: the sample that launched each slice, by slice id, -1 for none; shape (slices + 1,).
    """
    samples = max(1, int(keep.sum()))
    flops, unknown = _flops(trace, source, index, keep)
    tokens, first = _first_input(trace, source, index, keep)
    steady, kernels = _kernel_sequences(source, sample_of, keep)
    return StepWork(
        matrix_flops=None if flops is None else flops / samples,
        unknown_ops=unknown,
        tokens=tokens,
        first=first,
        steady=steady,
        kernels=kernels,
        uploaded_bytes=_bytes_per_sample(trace, "copies", "direction = 'HtoD'", keep, sample_of),
        collective_bytes=_bytes_per_sample(trace, "collectives", "true", keep, sample_of),
    )


def _bytes_per_sample(trace: Trace, table: str, condition: str, keep: Mask, sample_of: Ints) -> float | None:
    """Bytes of the GPU slices of a table that typical samples launched; None where a row has no bytes."""
    rows = trace.sql(f"SELECT slice, bytes FROM {table} WHERE {condition}").rows
    sizes = [size for slice_id, size in rows if sample_of[slice_id] >= 0 and keep[sample_of[slice_id]]]
    if not sizes or None in sizes:
        return None
    return float(sum(sizes)) / max(1, int(keep.sum()))


def _flops(trace: Trace, source: Frame, index: StepIndex, keep: Mask) -> tuple[float | None, tuple[str, ...]]:
    """(FLOPs of all typical steps, ops whose shapes do not tell them); None without any recorded shape."""
    work = matrix_work(trace)
    mine = np.ones(len(work.slices), dtype=bool)
    if len(index.slices):
        step = step_of_host(source, index, work.slices)
        mine = (step >= 0) & keep[step]
    names, flops = source.name[work.slices[mine]], work.flops[mine]
    if not len(names):
        return None, ()
    unknown = np.unique(names[np.isnan(flops)])
    total = None if len(unknown) == len(np.unique(names)) else float(np.nansum(flops))
    return total, tuple(sorted(source.names[int(number)] for number in unknown))


def _first_input(trace: Trace, source: Frame, index: StepIndex, keep: Mask) -> tuple[int | None, str | None]:
    """(rows of the first matrix multiply of a typical step, which multiply this is).

    The rows are all dimensions of its input but the last, multiplied: the tokens, rows or samples of the
    step. This is read from shapes only, so the text names the input that was used.
    """
    steps = index.slices[keep[: len(index.slices)]] if len(index.slices) else index.slices
    if not len(steps):
        return None, None
    step = int(steps[-1])
    rows = trace.sql(
        "SELECT s.name, o.shapes FROM ops o JOIN slices s USING (slice) WHERE s.ts_ns >= ? AND s.ts_ns < ? "
        "AND s.track = ? AND o.shapes IS NOT NULL AND s.name IN ('aten::linear', 'aten::mm', 'aten::addmm', "
        "'aten::bmm', 'aten::matmul') ORDER BY s.ts_ns, s.dur_ns DESC LIMIT 1",
        (int(source.ts[step]), int(source.end[step]), int(source.track[step])),
    ).rows
    for name, shapes in rows:
        inputs = parse_list(shapes)
        dims = inputs[1] if name == "aten::addmm" and len(inputs) > 1 else inputs[0]
        if isinstance(dims, list) and len(dims) >= 2 and all(isinstance(size, int) for size in dims):
            return prod(dims[:-1]), f"the input {dims} of the step's first {name}"
    return None, None


def _kernel_sequences(source: Frame, sample_of: Ints, keep: Mask) -> tuple[bool, int]:
    """(do all typical samples launch the same kernels, number of kernels of the most common sequence)."""
    kernels = source.of("kernel")
    sample = sample_of[kernels]
    mine = (sample >= 0) & keep[sample]
    kernels, sample = kernels[mine], sample[mine]
    if not len(kernels):
        return True, 0
    order = np.lexsort((source.name[kernels], sample))
    sample, names = sample[order], source.name[kernels][order]
    cuts = np.flatnonzero(sample[1:] != sample[:-1]) + 1
    parts = np.split(names, cuts)
    sequences = Counter(part.tobytes() for part in parts)
    best, _ = sequences.most_common(1)[0]
    return len(sequences) == 1 and len(parts) == int(keep.sum()), len(best) // names.itemsize
