"""torch's tree over host slices, each rule on one screen."""

from __future__ import annotations

import numpy as np

from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.op_tree import op_tree, tree_sum
from profrun.analysis.trace.ops import operators
from tests.analysis.kit import memory_trace

LAUNCH = "cudaLaunchKernel"


def test_a_slice_that_ends_after_its_neighbour_is_not_its_child() -> None:
    """Real: a backward call that ends after the evaluate_function that made it.

    Its GPU time is not counted to evaluate_function, as in torch's table, although the launch lies inside
    of it in time.
    """
    rows = [
        ("range", "backward", 0, 100, "main"),
        ("op", "evaluate_function: AddmmBackward0", 10, 30, "main"),
        ("op", "AddmmBackward0", 12, 40, "main"),  # ends at 52, evaluate_function at 40
        ("api", LAUNCH, 20, 5, "main", {"parent": 2}),
        ("kernel", "gemm", 60, 8, "stream 7", {"launch": 3}),
    ]
    found = {row.name: (row.self_cpu_ns, row.device_ns) for row in operators(memory_trace(rows))}
    assert found == {
        "backward": (100 - 30 - 40, 8),
        "evaluate_function: AddmmBackward0": (30, 0),
        "AddmmBackward0": (40 - 5, 8),
        LAUNCH: (5, 0),
    }


def test_the_annotation_of_an_asynchronous_collective_has_no_self_time() -> None:
    rows = [
        ("op", "record_param_comms", 0, 50, "main"),
        ("range", "nccl:all_reduce", 10, 30, "main"),
        ("api", LAUNCH, 15, 5, "main"),
        ("kernel", "ncclDevKernel", 60, 100, "stream 7", {"launch": 2}),
    ]
    found = [
        (row.name, row.calls, row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns)
        for row in operators(memory_trace(rows))
    ]
    assert found == [
        ("record_param_comms", 1, 45, 50, 100, 100),
        (LAUNCH, 1, 5, 5, 0, 0),
        ("nccl:all_reduce", 1, 0, 30, 0, 0),
    ]


def test_an_op_of_the_same_name_is_no_annotation() -> None:
    rows = [("op", "gloo:all_reduce", 0, 30, "main"), ("op", "aten::copy_", 5, 10, "main")]
    tree = op_tree(frame(memory_trace(rows)))
    assert tree.self_cpu.tolist() == [20, 10]


def test_sums_over_a_tree() -> None:
    #          0
    #        1   2
    #       3 4    and 5 alone
    parent = np.array([-1, 0, 0, 1, 1, -1], dtype=np.int32)
    found = tree_sum(parent, np.array([1.0, 2.0, 4.0, 8.0, 0.0, 16.0]))
    assert found.tolist() == [15, 10, 4, 8, 0, 16]
    assert tree_sum(parent, np.zeros(6)).tolist() == [0] * 6
