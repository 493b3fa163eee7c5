"""The time that profilers need to write."""

from __future__ import annotations

import pytest

from profrun.backends.profilers import finalise_s, margin_s, patience_s, profilers_of
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan


@pytest.mark.parametrize(
    ("collectors", "vendor", "names"),
    [
        ("none", "nvidia", ["none"]),
        ("timeline", "nvidia", ["nsys"]),
        ("timeline", "amd", ["rocprof"]),
        ("timeline", "auto", ["nsys", "rocprof"]),
    ],
)
def test_what_a_trial_may_become(collectors: str, vendor: str, names: list[str]) -> None:
    plan = make_plan(load_text(f"name: t\ncommand: python x.py\ncollectors: [{collectors}]\n"))
    assert sorted(found.name for found, _ in profilers_of(plan.trials[0], vendor)) == names


def test_the_slowest_profiler_decides() -> None:
    plan = make_plan(load_text("name: t\ncommand: python x.py\ncollectors: [none, nsys]\n"))
    none, nsys = (finalise_s(plan, [trial]) for trial in plan.trials)
    assert none < nsys == finalise_s(plan, plan.trials)
    assert margin_s(plan, plan.trials) == 60 + 2 * nsys + 60  # grace, writing and export, the rest


def test_a_rank_counts_as_dead_when_its_profiler_cannot_be_the_reason() -> None:
    text = "name: t\ncommand: python x.py\ncollectors: [none, nsys]\nresources: {grace: 5s}\n"
    plan = make_plan(load_text(text))
    none, nsys = (patience_s(plan, trial) for trial in plan.trials)
    assert none == 120  # NFS may show a sign of life a minute late
    assert nsys == margin_s(plan, plan.trials[1:]) > 300
