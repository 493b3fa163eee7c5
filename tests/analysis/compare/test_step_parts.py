"""The parts of a step add up to it."""

from __future__ import annotations

from profrun.analysis.compare import ComparedTrial, compare, read_trial
from tests.analysis.kit import memory_trace, step


def test_parts_of_a_step_with_two_streams() -> None:
    """150 ns of kernels in 120 ns of GPU time: 30 of them beside others; 80 ns of the step have none."""

    def side(second: int) -> ComparedTrial:
        rows = [
            step(1, 0, 200),
            ("api", "cudaLaunchKernel", 0, 10, "main"),
            ("api", "cudaLaunchKernel", 20, 10, "main"),
            ("kernel", "k", 30, 100, "stream 7", {"launch": 1}),
            ("kernel", "k", 100, second, "stream 8", {"launch": 2}),
        ]
        return read_trial(memory_trace(rows))

    parts = {part.name: part for part in compare([side(50)], [side(70)]).parts}
    assert {name: (part.a_ns, part.b_ns) for name, part in parts.items()} == {
        "gpu": (150, 170),
        "concurrent": (-30, -30),
        "no own GPU work": (80, 60),
    }
    assert sum(part.a_ns for part in parts.values()) == 200
