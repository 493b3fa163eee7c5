"""Kernels and operators of the steps alone, so that they can be stated per step: ``per_step``.

The tables of kernels and operators count everything that was recorded. Work outside of the steps (set-up, an
evaluation between two steps) must not be divided by the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from profrun.analysis.trace.frame import Index, frame
from profrun.analysis.trace.kernels import KernelRow, KernelWork, kernels
from profrun.analysis.trace.op_tree import op_tree
from profrun.analysis.trace.ops import OpRow, OpWork, operators, rows_of, totals
from profrun.analysis.trace.steps import step_index, step_of_host

if TYPE_CHECKING:
    from profrun.traces.trace import Trace


@dataclass(frozen=True)
class PerStep:
    """The steps of all ranks, in total: divide by ``steps`` for one step of one rank.

    Attributes:
        steps: how many steps.
        step_ns: host time of all steps, ns.
        kernel_ns: time of all kernels that steps launched, ns; the denominator of their shares.
        self_cpu_ns, self_device_ns: self CPU time and self GPU time of all operators, ranges and calls in
            steps, ns; the denominators of theirs.
    """

    steps: int
    step_ns: int
    kernel_ns: int
    self_cpu_ns: int
    self_device_ns: int


def per_step(trace: Trace) -> tuple[PerStep | None, list[KernelRow], list[OpRow]]:
    """The tables of kernels and operators with the part of each row that lies in steps.

    A kernel belongs to the step that launched it; a call to the step in which it starts, on any thread.

    Returns:
        The sums (None for a recording without steps), the kernels and the operators. With steps both are
        sorted by the time in steps.
    """
    source = frame(trace)
    index = step_index(source)
    kernel_rows, op_rows = kernels(trace), operators(trace)
    if not len(index.slices):
        return None, kernel_rows, op_rows
    ids = source.of("kernel")
    ids = ids[index.of_gpu[ids] >= 0]
    calls = np.flatnonzero(op_tree(source).counted)
    of_ops = _ops(trace, calls[step_of_host(source, index, calls) >= 0])
    sums = PerStep(
        steps=len(index.slices),
        step_ns=int(source.durs(index.slices).sum()),
        kernel_ns=int(source.durs(ids).sum()),
        self_cpu_ns=sum(work.self_cpu_ns for work in of_ops.values()),
        self_device_ns=sum(work.self_device_ns for work in of_ops.values()),
    )
    return sums, _with_kernels(kernel_rows, _kernels(trace, ids)), _with_ops(op_rows, of_ops)


def _with_kernels(rows: Sequence[KernelRow], work: dict[str, KernelWork]) -> list[KernelRow]:
    none = KernelWork(0, 0)
    return sorted(
        (replace(row, in_steps=work.get(row.name, none)) for row in rows),
        key=lambda row: -(row.in_steps or none).total_ns,
    )


def _with_ops(rows: Sequence[OpRow], work: dict[tuple[str, str], OpWork]) -> list[OpRow]:
    none = OpWork(0, 0, 0, 0, 0)

    def order(row: OpRow) -> tuple[int, int]:
        own = row.in_steps or none
        return -own.self_device_ns, -own.self_cpu_ns

    return sorted((replace(row, in_steps=work.get((row.name, row.kind), none)) for row in rows), key=order)


def _kernels(trace: Trace, ids: Index) -> dict[str, KernelWork]:
    source = frame(trace)
    calls = np.bincount(source.name[ids], minlength=1)
    time = np.bincount(source.name[ids], weights=source.durs(ids), minlength=1)
    return {
        source.names[number]: KernelWork(int(calls[number]), int(time[number]))
        for number in np.flatnonzero(calls).tolist()
    }


def _ops(trace: Trace, ids: Index) -> dict[tuple[str, str], OpWork]:
    source = frame(trace)
    names, place = rows_of(source, ids)
    columns = totals(source, op_tree(source), ids, place, len(names))
    return {
        name: OpWork(**{column: int(values[number]) for column, values in columns.items()})
        for number, name in enumerate(names)
    }
