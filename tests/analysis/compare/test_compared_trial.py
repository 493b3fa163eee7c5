"""A trial survives its JSON, also that of profrun 0.1."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import trial_from_json
from tests.analysis.compare.trials import trial


def test_a_trial_survives_its_json() -> None:
    whole = replace(trial(values={"batch": 8}, began_ns=5), phase="steady", state=("power-cap",))
    assert trial_from_json(json.loads(json.dumps(whole.to_json()))) == whole
    whole = trial(values={"batch": 8}, throttled=("sw_power_cap",), doubts=(("a", "b"),))
    assert trial_from_json(json.loads(json.dumps(whole.to_json()))) == whole
    for bad in ({}, {"format": 99}, {"format": 2, "samples": "no"}, {"format": 1, "units": "no"}):
        with pytest.raises(ValueError, match=r"format|Object|Expected"):
            trial_from_json(bad)


def test_a_trial_that_profrun_0_2_saved_has_the_steps_of_the_window() -> None:
    old: dict[str, Any] = replace(trial(), phase="steady").to_json()
    del old["phase"], old["state"], old["conditions"]["began_ns"]
    assert trial_from_json(old | {"format": 2}) == trial()


def test_a_trial_that_profrun_0_1_saved_is_read() -> None:
    """Format 1 called samples units, kernel groups atoms and host operations host; it had no tool."""
    whole = trial()
    old: dict[str, Any] = whole.to_json()
    for before, now in (("units", "samples"), ("atoms", "kernel_groups"), ("host", "host_ops")):
        old[before] = old.pop(now)
    del old["conditions"]["tool"]
    assert trial_from_json(json.loads(json.dumps(old | {"format": 1}))) == whole


def test_a_trial_of_an_older_version_has_no_energy() -> None:
    old: dict[str, Any] = trial().to_json()
    del old["energy_j"], old["energy_note"]
    found = trial_from_json(json.loads(json.dumps(old)))
    assert (found.energy_j, found.energy_note) == (None, None)
