"""One result per guess, over all traces."""

from __future__ import annotations

from profrun.analysis.compare.expect import Check, summarise


def test_a_guess_fails_when_it_fails_on_one_trace_and_is_open_when_none_can_tell() -> None:
    def check(passed: bool | None, trial: str) -> Check:
        return Check(0, "dtype", "e", passed, f"of {trial}", trial)

    (both,) = summarise([check(True, "r1"), check(False, "r2"), check(None, "r3")])
    assert (both.passed, both.found, both.failed_on, both.trials) == (False, "of r2", ("r2",), ("r1", "r2"))
    (held,) = summarise([check(None, "r1"), check(True, "r2")])
    assert (held.passed, held.found) == (True, "of r2")
    (none,) = summarise([check(None, "r1")])
    assert none.passed is None
