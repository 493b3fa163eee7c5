"""What a run found, as values."""

from __future__ import annotations

from profrun.store.run_result import run_result
from tests.store.states import STATE


def test_the_end_of_a_run_for_a_machine() -> None:
    result = run_result(STATE)
    assert [(t.state, t.median_step_ns, t.steps, t.trace) for t in result.trials] == [
        ("finished", 1_250_000, 8, "/r/t-1/trials/000/trace"),
        ("finished", 1_875_000, 8, None),
        ("finished", 1_375_000, 8, None),
        ("failed", 2_500_000, 8, None),
        ("planned", None, None, None),
    ]
