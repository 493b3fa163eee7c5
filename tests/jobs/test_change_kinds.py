"""Changes of a job, and its rounds, as they are written and read."""

from __future__ import annotations

import re

import pytest

from profrun.contract.changes import CHANGES
from profrun.contract.results import Results
from profrun.jobs.change_kinds import ChangeName, Sequential
from profrun.jobs.dump import dump_job
from profrun.jobs.load import load_text
from tests.jobs.specs import errors_of, load_small


def test_a_change_is_read_with_its_value_spelled_out() -> None:
    job = load_small("changes: {default: [tf32, loader-workers, cpu-threads=16]}")
    assert job.changes == {"default": ("tf32", "loader-workers=4", "cpu-threads=16")}
    assert load_text(dump_job(job)) == job


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("'tf32=1'", "the change 'tf32' has no value; write tf32"),
        ("'loader-workers=0'", "the change 'loader-workers' has no value '0'; values match "),
        ("compile=", "; write compile=default"),
        ("3", "'3' is a number"),
        ("[tf32]", "a list does not fit"),
        ("Tf32", "there is no change 'Tf32'; did you mean 'tf32'?"),
    ],
)
def test_what_is_no_change_is_refused_at_its_place(text: str, said: str) -> None:
    (error,) = errors_of(f"name: x\ncommand: run\nchanges: {{default: [set-to-none, {text}]}}")
    assert error.startswith("job.yaml:3:34: changes.default: ")
    assert said in error


def test_a_change_is_named_once_and_a_list_is_not_empty() -> None:
    (twice,) = errors_of("name: x\ncommand: run\nchanges: {default: [tf32, tf32]}")
    assert "'tf32'" in twice
    assert errors_of("name: x\ncommand: run\nchanges: {default: []}")


def test_the_schema_takes_what_is_written_for_each_kind() -> None:
    pattern = ChangeName().schema()["pattern"]
    assert isinstance(pattern, str)
    for kind in CHANGES.values():
        assert re.search(pattern, kind.name)
        assert not kind.value or re.search(pattern, f"{kind.name}={kind.value}")
    assert not re.search(pattern, "tf32 ")


def test_rounds_are_read_with_their_defaults() -> None:
    job = load_small(
        "variants: {a: {}, b: {}}\nrepeats: {none: 4}\nresults: {}\n"
        "sequential: {base: a, worth: 5%, budget: 10m, narrow: 20%}"
    )
    assert job.sequential == Sequential("a", 0.05, 3, 600.0, 0.2)
    assert job.results == Results(20, None)
    assert load_text(dump_job(job)) == job
