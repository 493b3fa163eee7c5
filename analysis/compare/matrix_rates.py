"""Achieved rates of matrix ops: ``matrix_rates`` is given a trace, returns a ``Rate`` per op and shapes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from profrun.analysis.compare.compared_trial import Rate
from profrun.analysis.trace.flops import parse_list
from profrun.analysis.trace.roofline import roofline

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

MOST_RATES = 200
_NO_MATRIX = ("aten::add", "aten::mul")
"""Ops of the roofline that have FLOPs and do no matrix work."""


def matrix_rates(trace: Trace) -> tuple[Rate, ...]:
    """Matrix ops with their achieved rate over the whole recording, most GPU time first."""
    found = []
    for row in roofline(trace).rows:
        flops = _attention_flops(row.op, row.shapes) or row.flops
        if not flops or row.op in _NO_MATRIX or not row.gpu_ns:
            continue
        tflops = flops * row.calls / row.gpu_ns / 1e3
        share = tflops / row.peak_tflops if row.peak_tflops else None
        found.append(
            Rate(row.op, row.shapes, row.dtype, row.calls, row.gpu_ns, flops, tflops, row.peak_tflops, share)
        )
    return tuple(found[:MOST_RATES])


def _attention_flops(op: str, shapes: str) -> int | None:
    """FLOPs of inner attention ops: 4 x B Sq H D x Sk, their tensors being batch, sequence, heads, width."""
    if op not in ("aten::_flash_attention_forward", "aten::_efficient_attention_forward"):
        return None
    tensors = [dims for dims in parse_list(shapes)[:2] if isinstance(dims, list) and len(dims) == 4]
    return 4 * prod(tensors[0]) * int(tensors[1][1]) if len(tensors) == 2 else None
