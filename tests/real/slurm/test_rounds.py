"""A sequential job on a real Slurm: a round is submitted when the one before has ended, and what is decided
is not submitted any more."""

from __future__ import annotations

import pytest

from tests.real.slurm.conftest import Desk
from tests.real.slurm.test_runs import spec

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

STEPS = """
import os, sys, time
import profrun
with open("ran", "a") as file:
    file.write(f"{sys.argv[1]} {os.environ['SLURM_JOB_ID']}\\n")
for _ in range(20):
    time.sleep(float(sys.argv[1]))
    profrun.step()
"""


def test_rounds_end_when_the_variants_are_decided(desk: Desk) -> None:
    desk.write("work.py", STEPS)
    document = desk.submit(
        spec(
            "python3 work.py {seconds}",
            "variants: {base: {seconds: 0.1}, fast: {seconds: 0.05}}\nsequential: {base: base}\n"
            "repeats: 6\ncollectors: [none]\nresources: {timeout: 60s, grace: 5s}\n",
        )
    )
    states = {(one["variant"], one["repeat"]): one["state"] for one in document["trials"]}
    ran = [number for (variant, number), state in states.items() if variant == "fast" and state == "finished"]
    assert ran == list(range(1, len(ran) + 1))
    assert 3 <= len(ran) < 6, "the gain is found in the first rounds"
    assert {states["fast", number] for number in range(len(ran) + 1, 7)} == {"skipped"}
    assert document["state"] == "finished"
    lines = [line.split() for line in (desk.folder / "ran").read_text().splitlines()]
    assert [seconds for seconds, _ in lines] == ["0.1", "0.05"] * len(ran)
