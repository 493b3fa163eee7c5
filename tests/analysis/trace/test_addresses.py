"""Where kernels come from: a line, the line of a forward, lines behind generated code, a call of backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from profrun.analysis.trace.addresses import addresses
from profrun.analysis.trace.frame import frame
from profrun.contract.line_names import Line, line_name
from tests.analysis.kit import memory_trace

A = Line("/me/model.py", 3, "forward")
B = Line("/me/train.py", 9, "<module>")
GENERATED = Line("/tmp/torchinductor_me/ab/cab.py", 20, "call")


def step(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [("step", "ProfilerStep#0", 0, 1000, "main"), *rows]


def told(rows: Sequence[tuple[Any, ...]], side: Mapping[str, Any] | None = None) -> dict[str, object]:
    """Kernel -> (lines, module, backward, via), or why it has no address."""
    trace = memory_trace(rows, side=side)
    found = addresses(trace)
    assert found is not None
    source = frame(trace)
    answer: dict[str, object] = {}
    for slice_id, at in zip(found.gpu.tolist(), found.of.tolist(), strict=True):
        one = found.table[at] if at >= 0 else None
        answer[source.text(slice_id)] = (
            (*one.lines, one.module, one.backward, one.via) if one is not None else None
        )
    return answer


def test_the_innermost_line_round_the_launch() -> None:
    rows = step(
        [
            ("range", line_name(B), 10, 400, "main"),
            ("range", "nn.Module: layers.0 (Block)", 20, 300, "main"),
            ("range", line_name(A), 30, 100, "main"),
            ("op", "aten::mm", 40, 50, "main"),
            ("api", "cudaLaunchKernel", 50, 5, "main"),
            ("api", "cudaLaunchKernel", 350, 5, "main"),
            ("kernel", "gemm", 100, 50, "stream 7", {"launch": 5}),
            ("kernel", "add", 400, 50, "stream 7", {"launch": 6}),
        ]
    )
    assert told(rows) == {
        "gemm": (A, "layers.0", False, "line"),
        "add": (B, None, False, "line"),
    }


def test_the_innermost_module_round_the_launch() -> None:
    """A layer of a library has no line inside: the line calls the module, and the module launches."""
    rows = step(
        [
            ("range", "nn.Module: layers.0 (Block)", 10, 400, "main"),
            ("range", line_name(A), 20, 300, "main"),
            ("range", "nn.Module: layers.0.up (Linear)", 30, 100, "main"),
            ("api", "cudaLaunchKernel", 50, 5, "main"),
            ("kernel", "gemm", 100, 50, "stream 7", {"launch": 4}),
        ]
    )
    assert told(rows) == {"gemm": (A, "layers.0.up", False, "line")}


def test_a_backward_belongs_to_the_line_of_its_forward() -> None:
    """The node of the op, and work of the engine outside of it, which belongs to the call of backward."""
    rows = step(
        [
            ("range", line_name(A), 10, 50, "main"),
            ("op", "aten::mm", 20, 10, "main", {"ops.sequence": 7}),
            ("range", line_name(B), 100, 400, "main"),
            ("op", "autograd::engine::evaluate_function: MmBackward0", 120, 80, "autograd"),
            ("op", "MmBackward0", 130, 50, "autograd", {"ops.sequence": 7, "ops.backward_of": 2}),
            ("api", "cudaLaunchKernel", 140, 5, "autograd"),
            ("op", "autograd::engine::evaluate_function: AccumulateGrad", 210, 80, "autograd"),
            ("api", "cudaLaunchKernel", 220, 5, "autograd"),
            ("kernel", "gemm", 300, 50, "stream 7", {"launch": 6}),
            ("kernel", "add", 400, 50, "stream 7", {"launch": 8}),
        ]
    )
    assert told(rows) == {"gemm": (A, None, True, "autograd"), "add": (B, None, True, "backward")}


EARLY = [
    ("range", line_name(B), 10, 400, "main"),
    ("op", "autograd::engine::evaluate_function: MmBackward0", 20, 80, "autograd", {"ops.sequence": 3}),
    ("op", "MmBackward0", 30, 50, "autograd", {"ops.sequence": 3}),
    ("api", "cudaLaunchKernel", 40, 5, "autograd"),
    ("kernel", "gemm", 100, 50, "stream 7", {"launch": 4}),
]


def test_a_backward_whose_forward_ran_before_the_recording_has_no_address() -> None:
    """Its number is below that of every recorded op of a forward. Else no op of the forward made the node."""
    later = ("op", "aten::mm", 500, 10, "main", {"ops.sequence": 4})
    assert told(step([*EARLY, later])) == {"gemm": None}
    before = ("op", "aten::mm", 500, 10, "main", {"ops.sequence": 2})
    assert told(step([*EARLY, before])) == {"gemm": (B, None, True, "backward")}


def test_lines_of_a_function_of_the_users_in_the_backward_are_their_own() -> None:
    """autograd.Function.backward and what activation checkpointing calls again."""
    rows = step(
        [
            ("range", line_name(B), 100, 400, "main"),
            ("op", "autograd::engine::evaluate_function: FnBackward", 120, 80, "autograd"),
            ("range", line_name(A), 130, 50, "autograd"),
            ("api", "cudaLaunchKernel", 140, 5, "autograd"),
            ("kernel", "mul", 300, 50, "stream 7", {"launch": 4}),
        ]
    )
    assert told(rows) == {"mul": (A, None, True, "line")}


def behind(
    kernel: str,
    *stacks: Sequence[Line],
    modules: Sequence[str | None] = (),
    views: Sequence[int] = (),
    sums: Sequence[int] = (),
) -> list[dict[str, Any]]:
    """Rows of ``generated``: an operation for each stack."""
    names = [*modules, *[None] * (len(stacks) - len(modules))]
    return [
        {
            "file": GENERATED.file, "line": GENERATED.line, "kernel": kernel, "operation": number,
            "frame": frame, "source_file": line.file, "source_line": line.line,
            "source_function": line.function, "module": names[number], "is_view": number in views,
            "is_gradient_sum": number in sums,
        }
        for number, stack in enumerate(stacks)
        for frame, line in enumerate(stack)
    ]  # fmt: skip


COMPILED = step(
    [
        ("range", line_name(B), 10, 400, "main"),
        ("range", line_name(GENERATED), 30, 100, "main"),
        ("api", "cuLaunchKernel", 50, 5, "main"),
        ("kernel", "triton_poi_fused_gelu_0", 100, 50, "stream 7", {"launch": 3}),
    ]
)


def test_a_fused_kernel_has_the_lines_that_the_compiler_tells() -> None:
    """Of each stack the innermost line of the program, each line once."""
    library = Line("/usr/lib/python3/dist-packages/timm/layers.py", 5, "gelu")
    side = {"generated": behind("triton_poi_fused_gelu_0:4", [B, A], [B, library], [B, A])}
    assert told(COMPILED, side) == {"triton_poi_fused_gelu_0": (A, B, None, False, "compiled")}


def test_work_of_a_library_has_the_line_that_runs_it_as_without_the_compiler() -> None:
    """Where the mapping counts the library as the program's own, its line counts."""
    library = Line("/venv/lib/python3.12/site-packages/timm/layers.py", 5, "gelu")
    rows = behind("triton_poi_fused_gelu_0:4", [library])
    assert told(COMPILED, {"generated": rows}) == {"triton_poi_fused_gelu_0": (B, None, False, "compiled")}
    own = [{**row, "is_own": True} for row in rows]
    assert told(COMPILED, {"generated": own}) == {
        "triton_poi_fused_gelu_0": (library, None, False, "compiled")
    }
    both = behind("triton_poi_fused_gelu_0:4", [A], [library])
    assert told(COMPILED, {"generated": both}) == {"triton_poi_fused_gelu_0": (A, B, None, False, "compiled")}


def test_an_operation_without_a_stack_has_the_line_that_runs_it() -> None:
    """As that of an nn.Sequential, whose forward is a library's."""
    rows = [
        {
            "file": GENERATED.file, "line": GENERATED.line, "kernel": "triton_poi_fused_gelu_0:4",
            "operation": 0, "frame": 0, "op": "aten.relu.default", "module": "1", "is_view": False,
            "is_gradient_sum": False,
        }
    ]  # fmt: skip
    assert told(COMPILED, {"generated": rows}) == {"triton_poi_fused_gelu_0": (B, "1", False, "compiled")}
    unknown = [{**rows[0], "op": None, "module": None}]
    assert told(COMPILED, {"generated": unknown}) == {"triton_poi_fused_gelu_0": None}


@pytest.mark.parametrize(
    ("op", "expected"),
    [("aten::_foreach_copy_", (B, None, False, "line")), ("aten::sum", None)],
)
def test_copies_of_inputs_have_the_line_that_runs_generated_code_and_other_work_has_none(
    op: str, expected: object
) -> None:
    """In a line of generated code of which the compiler tells nothing; it tells another line of the file."""
    other = Line(GENERATED.file, GENERATED.line + 9, "call")
    rows = step(
        [
            ("range", line_name(B), 10, 400, "main"),
            ("range", line_name(other), 30, 100, "main"),
            ("op", op, 40, 50, "main"),
            ("api", "cudaLaunchKernel", 50, 5, "main"),
            ("kernel", "work", 100, 50, "stream 7", {"launch": 4}),
        ]
    )
    side = {"generated": behind("triton_poi_fused_gelu_0:4", [A])}
    assert told(rows, side) == {"work": expected}


def test_sums_of_gradients_count_only_where_a_kernel_does_nothing_else() -> None:
    mixed = {"generated": behind("triton_poi_fused_gelu_0:4", [A], [B], sums=[1])}
    alone = {"generated": behind("triton_poi_fused_gelu_0:4", [A], sums=[0])}
    assert (
        told(COMPILED, mixed)
        == told(COMPILED, alone)
        == {"triton_poi_fused_gelu_0": (A, None, False, "compiled")}
    )


def test_views_add_no_work_where_a_kernel_does_other_work() -> None:
    mixed = {"generated": behind("triton_poi_fused_gelu_0:4", [A], [B], views=[1])}
    views = {"generated": behind("triton_poi_fused_gelu_0:4", [A], [B], views=[0, 1])}
    (one,), (both,) = told(COMPILED, mixed).values(), told(COMPILED, views).values()
    assert (one, both) == ((A, None, False, "compiled"), (A, B, None, False, "compiled"))


@pytest.mark.parametrize(
    ("outer", "modules", "expected"),
    [
        ("root", ["h.0.mlp"], "h.0.mlp"),
        ("root", ["h.0.mlp", "h.0.attn"], "h.0"),
        ("root", ["h.0", "root"], "root"),
        ("root", ["h.0", None], "root"),
        ("h.1", ["attn.c_proj"], "h.1.attn.c_proj"),
        (None, ["h.0"], "h.0"),
        (None, [None], None),
    ],
)
def test_the_module_of_a_compiled_kernel_holds_all_that_it_does(
    outer: str | None, modules: list[str | None], expected: str | None
) -> None:
    """Its name is that of the module that was compiled, and the name below it that the compiler tells."""
    name = f"nn.Module: {outer} (Net)" if outer else "other"
    rows = step(
        [
            ("range", name, 5, 500, "main"),
            ("range", line_name(GENERATED), 30, 100, "main"),
            ("api", "cuLaunchKernel", 50, 5, "main"),
            ("kernel", "triton_poi_fused_gelu_0", 100, 50, "stream 7", {"launch": 3}),
        ]
    )
    side = {"generated": behind("triton_poi_fused_gelu_0:4", *[[A]] * len(modules), modules=modules)}
    assert told(rows, side) == {"triton_poi_fused_gelu_0": (A, expected, False, "compiled")}


def test_generated_code_that_tells_nothing_gives_no_address() -> None:
    assert told(COMPILED) == {"triton_poi_fused_gelu_0": None}
    two = [*behind("a:1", [A]), *behind("b:2", [B])]  # one line that calls two kernels
    assert told(COMPILED, {"generated": two}) == {"triton_poi_fused_gelu_0": None}


def test_replays_of_a_graph_and_lost_launches_have_none() -> None:
    rows = step(
        [
            ("range", line_name(B), 10, 400, "main"),
            ("api", "cudaGraphLaunch", 50, 5, "main"),
            ("kernel", "in graph", 100, 50, "stream 7", {"launch": 2}),
            ("kernel", "lost", 200, 50, "stream 7"),
        ]
    )
    assert told(rows) == {"in graph": None, "lost": None}
    trace = memory_trace(rows)
    found = addresses(trace)
    assert found is not None
    assert found.unresolved(frame(trace)) == {"no-launch": 50, "graph": 50}


def test_a_trace_without_lines_is_no_mapping() -> None:
    assert addresses(memory_trace(step([("kernel", "k", 1, 2, "stream 7")]))) is None


def test_python_functions_of_torch_tell_no_line() -> None:
    """They have the line of the definition: launches of a whole function would come from its first line."""
    rows = step(
        [
            ("python", "/me/model.py(3): forward", 10, 400, "main"),
            ("api", "cudaLaunchKernel", 50, 5, "main"),
            ("kernel", "gemm", 100, 50, "stream 7", {"launch": 2}),
        ]
    )
    assert addresses(memory_trace(rows)) is None


LINEAR = Line("/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", 134, "forward")
APPLY = Line("/opt/venv/lib/python3.12/site-packages/torch/autograd/function.py", 317, "apply")


def stacked(calls: Mapping[int, int], *stacks: Sequence[Line]) -> dict[str, list[dict[str, Any]]]:
    """The tables of stacks: slice of a call -> number of its stack; frames from the outermost."""
    return {
        "stacks": [
            {"stack": number, "frame": place, **frame._asdict()}
            for number, stack in enumerate(stacks)
            for place, frame in enumerate(stack)
        ],
        "call_stacks": [{"slice": call, "stack": stack} for call, stack in calls.items()],
    }


def test_a_launch_with_a_stack_comes_from_the_innermost_line_of_the_program() -> None:
    """A driver's call has the stack of the call round it. One of a library alone tells no line."""
    rows = step(
        [
            ("range", "nn.Module: layers.0 (Block)", 20, 100, "main"),
            ("api", "cudaLaunchKernel", 30, 50, "main"),
            ("api", "cuLaunchKernel", 40, 5, "main"),
            ("api", "cudaMemcpyAsync", 200, 5, "main"),
            ("api", "cudaLaunchKernelExC", 300, 5, "main"),
            ("api", "cudaLaunchKernel", 350, 5, "worker"),
            ("api", "cudaGraphLaunch", 400, 5, "main"),
            ("api", "cuLaunchKernel", 450, 5, "autograd"),
            ("kernel", "gemm", 500, 50, "stream 7", {"launch": 3}),
            ("memcpy", "copy", 600, 50, "stream 7", {"launch": 4, "copies.direction": "HtoD"}),
            ("kernel", "no stack", 700, 50, "stream 7", {"launch": 5}),
            ("kernel", "library", 800, 50, "stream 7", {"launch": 6}),
            ("kernel", "in graph", 900, 50, "stream 7", {"launch": 7}),
            ("kernel", "compiled", 960, 30, "stream 7", {"launch": 8}),
        ]
    )
    side = stacked({2: 0, 4: 1, 6: 2, 7: 1, 8: 3}, [B, A, LINEAR], [B], [LINEAR], [APPLY, GENERATED, LINEAR])
    assert told(rows, side) == {
        "gemm": (A, "layers.0", False, "stack"),
        "copy": (B, None, False, "stack"),
        "no stack": None,
        "library": None,
        "in graph": None,
        "compiled": None,
    }
    trace = memory_trace(rows, side=side)
    found = addresses(trace)
    assert found is not None
    assert found.unresolved(frame(trace)) == {"graph": 50, "generated": 30, "no-line": 50, "no-stack": 50}


def test_a_backward_in_python_that_the_engine_calls_is_work_of_the_backward() -> None:
    rows = step(
        [
            ("api", "cudaLaunchKernel", 50, 5, "autograd"),
            ("kernel", "mul", 100, 50, "stream 7", {"launch": 1}),
        ]
    )
    assert told(rows, stacked({1: 0}, [APPLY, A])) == {"mul": (A, None, True, "stack")}


def test_a_line_round_the_launch_comes_before_its_stack() -> None:
    rows = step(
        [
            ("range", line_name(A), 10, 100, "main"),
            ("api", "cudaLaunchKernel", 50, 5, "main"),
            ("api", "cudaLaunchKernel", 150, 5, "main"),
            ("api", "cudaLaunchKernel", 170, 5, "main"),
            ("kernel", "gemm", 200, 50, "stream 7", {"launch": 2}),
            ("kernel", "add", 300, 50, "stream 7", {"launch": 3}),
            ("kernel", "mul", 400, 50, "stream 7", {"launch": 4}),
        ]
    )
    assert told(rows, stacked({2: 0, 3: 0}, [B])) == {
        "gemm": (A, None, False, "line"),
        "add": (B, None, False, "stack"),
        "mul": None,
    }


def graph_rows(*replay: tuple[str, str, int, int]) -> list[tuple[Any, ...]]:
    """A capture of a kernel from line A, a memset and a kernel from line B; a step with one replay of it."""
    return [
        ("range", "profrun.capture 0", 0, 1, "main"),
        ("range", line_name(A), 10, 30, "main"),
        ("api", "cudaLaunchKernel", 20, 5, "main"),
        ("range", line_name(B), 50, 60, "main"),
        ("api", "cudaMemsetAsync", 60, 5, "main"),
        ("api", "cuLaunchKernelEx", 80, 5, "main"),
        ("range", "profrun.captured 0", 120, 1, "main"),
        ("step", "ProfilerStep#0", 1000, 1000, "main"),
        ("range", "profrun.graph 0", 1100, 100, "main"),
        ("api", "cudaGraphLaunch", 1110, 5, "main"),
        *((kind, name, ts, dur, "stream 7", {"launch": 9}) for kind, name, ts, dur in replay),
    ]


NODES = (("kernel", "gemm", 1200, 50), ("memset", "Memset", 1260, 5), ("kernel", "add", 1270, 50))


def test_nodes_of_a_replay_have_the_lines_of_their_capture() -> None:
    assert told(graph_rows(*NODES)) == {
        "gemm": (A, None, False, "line"),
        "Memset": (B, None, False, "line"),
        "add": (B, None, False, "line"),
    }


def test_a_replay_that_is_not_sure_to_be_its_capture_has_none() -> None:
    """Fewer nodes, other kinds, nodes that run at the same time."""
    side_by_side = (NODES[0], NODES[1], ("kernel", "add", 1240, 50))
    for replay in (
        NODES[:2],
        (("memset", "Memset", 1200, 5), ("kernel", "gemm", 1210, 50), NODES[2]),
        side_by_side,
    ):
        assert set(told(graph_rows(*replay)).values()) <= {None}, replay
