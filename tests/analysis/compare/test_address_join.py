"""Addresses of a mapping, carried over to the kernels of another trial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profrun.analysis.compare.address_join import completed, joined
from profrun.analysis.trace.addresses import UNRESOLVED, Address, Addresses, Via
from profrun.analysis.trace.frame import frame
from profrun.contract.line_names import Line, line_name
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace

Launch = tuple[str, int]
"""A kernel, and the number of the line that launches it."""


def line(number: int) -> Line:
    return Line("/me/model.py", number, "forward")


def trace(*steps: Sequence[Launch], lines: bool = False, thread: str = "main") -> Trace:
    """Steps of 1000 ns, each a list of launches."""
    rows: list[tuple[object, ...]] = []
    for number, launches in enumerate(steps):
        start = 1000 * number
        rows.append(("step", f"ProfilerStep#{number}", start, 1000, "main"))
        for place, (kernel, at) in enumerate(launches):
            ts = start + 10 + 20 * place
            if lines:
                rows.append(("range", line_name(line(at)), ts, 10, thread))
            rows.append(("api", "cudaLaunchKernel", ts + 2, 4, thread))
            rows.append(("kernel", kernel, ts + 5, 10, "stream 7", {"launch": len(rows) - 1}))
    return memory_trace(rows)


def told(clean: Trace, mapping: Trace) -> list[tuple[str, int | str]]:
    """(kernel, line or why there is none) in order of time."""
    found = joined(clean, mapping)
    assert found is not None
    source = frame(clean)
    codes = list(UNRESOLVED)
    return [
        (
            source.text(slice_id),
            found.table[of].lines[0].line if of >= 0 else codes[why],
        )
        for slice_id, of, why in zip(found.gpu.tolist(), found.of.tolist(), found.why.tolist(), strict=True)
    ]


STEP: list[Launch] = [("gemm", 3), ("add", 4), ("gemm", 5), ("add", 6)]


def test_the_same_kernels_in_the_same_order_have_the_same_lines() -> None:
    """However many steps each has, and whatever the clocks say."""
    assert told(trace(STEP, STEP, STEP), trace(STEP, STEP, lines=True)) == STEP * 3


def test_a_kernel_may_be_spelled_as_another_tool_does() -> None:
    """nsys and CUPTI; the number that Inductor gives a kernel tells it from others of one kind."""
    cupti = "void at::native::(anonymous namespace)::f<2, true, std::array<char*, 2ul> >(int, float const*)"
    nsys = "void at::native::<unnamed>::f<(int)2, (bool)1, std::array<char *, (unsigned long)2>>(int, T1)"
    mapping = trace([(cupti, 3), ("triton_poi_fused_0", 4), ("triton_poi_fused_1", 5)], lines=True)
    assert [at for _, at in told(trace([(nsys, 3), ("triton_poi_fused_0", 4)]), mapping)] == [3, 4]


def test_another_kernel_between_them_leaves_the_others_theirs() -> None:
    clean = [*STEP[:1], ("copy", 0), *STEP[1:]]
    assert told(trace(clean), trace(STEP, lines=True)) == [
        ("gemm", 3), ("copy", "other-work"), ("add", 4), ("gemm", 5), ("add", 6),
    ]  # fmt: skip


def test_a_kernel_that_ran_more_often_has_no_line() -> None:
    """Which of them is the new one, nothing tells."""
    assert told(trace([*STEP, ("add", 0)]), trace(STEP, lines=True)) == [
        ("gemm", 3), ("add", "other-work"), ("gemm", 5), ("add", "other-work"), ("add", "other-work"),
    ]  # fmt: skip


def test_steps_of_the_mapping_that_contradict_each_other_tell_nothing() -> None:
    other = [("gemm", 3), ("add", 4), ("gemm", 9), ("add", 6)]
    assert told(trace(STEP), trace(STEP, other, lines=True)) == [
        ("gemm", 3), ("add", 4), ("gemm", "ambiguous"), ("add", 6),
    ]  # fmt: skip


def test_threads_are_joined_by_what_they_are() -> None:
    mapping = trace(STEP, lines=True, thread="autograd")
    assert told(trace(STEP, thread="worker"), mapping) == STEP
    assert [why for _, why in told(trace(STEP), mapping)] == ["other-work"] * 4


def test_a_trace_without_lines_is_no_mapping() -> None:
    assert joined(trace(STEP), trace(STEP)) is None


def at(number: int, via: Via = "stack", module: str | None = None) -> Address:
    return Address((line(number),), module, False, via)


def known(*found: Address | None) -> Addresses:
    """One GPU slice after another: its address, or None for one whose launch is not recorded."""
    table = tuple(dict.fromkeys(one for one in found if one is not None))
    return Addresses(
        np.arange(len(found)),
        np.array([-1 if one is None else table.index(one) for one in found], dtype=np.int64),
        table,
        np.array([0 if one is None else -1 for one in found], dtype=np.int8),
    )


def test_what_a_trace_tells_itself_is_completed_by_the_mapping() -> None:
    """Where both agree, the mapping knows the module. Where they differ, the stack is of this very launch."""
    mapping = at(3, "line", "layers.0"), at(4, "line"), at(5, "autograd"), None, None
    both = completed(known(at(3), at(9), None, at(6), None), known(*mapping))
    told = [both.table[of] if of >= 0 else None for of in both.of.tolist()]
    assert told == [at(3, "line", "layers.0"), at(9), at(5, "autograd"), at(6), None]
    assert both.why.tolist() == [-1, -1, -1, -1, 0]


def test_a_step_of_the_mapping_without_the_forward_does_not_contradict_others() -> None:
    """Its first step has backward work whose forward ran before: the second step tells the line."""

    def step(start: int, sequence: int, **forward: int) -> list[tuple[object, ...]]:
        return [
            ("step", "ProfilerStep", start, 1000, "main"),
            ("op", "autograd::engine::evaluate_function: MmBackward0", start + 10, 80, "main",
             {"ops.sequence": sequence}),
            ("op", "MmBackward0", start + 20, 50, "main", {"ops.sequence": sequence, **forward}),
            ("api", "cudaLaunchKernel", start + 30, 5, "main"),
        ]  # fmt: skip

    rows = [
        *step(0, 3),
        ("range", line_name(line(7)), 500, 100, "main"),
        ("op", "aten::mm", 510, 10, "main", {"ops.sequence": 4}),
        *step(1000, 4, **{"ops.backward_of": 5}),
        ("kernel", "gemm", 100, 50, "stream 7", {"launch": 3}),
        ("kernel", "gemm", 1100, 50, "stream 7", {"launch": 9}),
    ]
    assert told(trace([("gemm", 0)]), memory_trace(rows)) == [("gemm", 7)]
