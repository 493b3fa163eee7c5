"""What a program computed, as it is written and read."""

from __future__ import annotations

import json

import pytest

from profrun.contract.codec import DocumentError, from_json, to_json
from profrun.contract.results import Results, ResultsFile


def test_values_that_are_not_finite_are_written_as_null() -> None:
    found = ResultsFile(3, "loss", (1.5, None, -2.0))
    text = json.dumps(to_json(found), allow_nan=False)
    assert json.loads(text)["values"] == [1.5, None, -2.0]
    assert from_json(ResultsFile, json.loads(text)) == found


def test_whole_numbers_are_values_and_other_kinds_are_refused() -> None:
    assert from_json(ResultsFile, {"rank": 0, "kind": "output", "values": [1]}).values == (1.0,)
    with pytest.raises(DocumentError, match="kind"):
        from_json(ResultsFile, {"rank": 0, "kind": "gradient", "values": []})


def test_a_job_asks_for_20_values_and_leaves_the_seed_alone_unless_it_says_so() -> None:
    assert Results() == Results(values=20, seed=None)
    assert from_json(Results, to_json(Results(5, 0))) == Results(5, 0)
