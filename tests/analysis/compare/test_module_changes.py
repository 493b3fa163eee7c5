"""Modules of both sides as one tree whose times add up."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.compare import ComparedTrial, compare
from profrun.analysis.compare.compared_trial import KernelGroup
from profrun.analysis.compare.module_changes import OUTSIDE
from tests.analysis.compare.trials import OTHER, trial


def _trial(times: tuple[int, ...], work: dict[str | None, int]) -> ComparedTrial:
    """A trial whose modules launched one kernel each, of so many ns per step."""
    groups = tuple(
        KernelGroup(f"k{number}", "gemm", "compute", (), "", module, False, len(times), ns * len(times))
        for number, (module, ns) in enumerate(work.items())
    )
    return replace(trial(times), kernel_groups=groups)


A = {"net.h.0": 1, "net.h.0.attn": 10, "net.h.1.attn": 20, "net.head": 5, None: 3, "solo.7": 2}
B = {"net.h.0.attn": 6, "net.h.1.attn": 6, "net.h.2.attn": 6, "net.head": 50, None: 1, "solo.7": 2}


def test_blocks_are_folded_and_every_level_adds_up() -> None:
    found = compare([_trial((100, 101, 99), A)], [_trial(OTHER, B)])
    told = [(row.name, row.depth, row.modules, row.a_ns, row.b_ns, row.a_own_ns) for row in found.modules]
    assert told == [
        ("net", 0, (1, 1), 36, 68, 0),
        ("net.head", 1, (1, 1), 5, 50, 5),
        ("net.h.*", 1, (2, 3), 31, 18, 1),
        ("net.h.*.attn", 2, (2, 3), 30, 18, 30),
        (OUTSIDE, 0, (1, 1), 3, 1, 3),
        ("solo", 0, (1, 1), 2, 2, 0),
        ("solo.7", 1, (1, 1), 2, 2, 2),
    ]
    assert sum(row.a_own_ns for row in found.modules) == sum(A.values())
    assert sum(row.b_own_ns for row in found.modules) == sum(B.values())
    assert sum(row.delta_ns for row in found.modules if row.depth == 0) == sum(B.values()) - sum(A.values())


def test_without_modules_there_is_no_tree() -> None:
    assert compare([_trial((100, 101, 99), {None: 3})], [_trial(OTHER, {None: 2})]).modules == ()


def test_layers_without_modules_inside_are_told_apart() -> None:
    """The first and the second layer of an nn.Sequential may be anything."""
    work: dict[str | None, int] = {"mlp.0": 4, "mlp.1": 3, "blocks.0.a": 2, "blocks.1.a": 1, "blocks.2.b": 9}
    found = compare([_trial((100, 101, 99), work)], [_trial(OTHER, work)])
    assert [(row.name, row.a_ns) for row in found.modules] == [
        ("blocks", 9), ("blocks.2", 9), ("blocks.2.b", 9),
        ("mlp", 7), ("mlp.0", 4), ("mlp.1", 3),
        ("blocks.*", 3), ("blocks.*.a", 3),  # two alike blocks; the third has another module
    ]  # fmt: skip
