"""Names of variants and ids of trials."""

from __future__ import annotations

import pytest

from profrun.contract.points import scalar_of, trial_id, value_word


@pytest.mark.parametrize(
    ("text", "value"),
    [("8", 8), ("0.1", 0.1), ("true", True), ("1e3", "1e3"), ("08", "08"), ("nan", "nan"), ("x", "x")],
)
def test_a_value_is_a_number_only_where_it_is_written_as_it_was_typed(text: str, value: object) -> None:
    assert (scalar_of(text), type(scalar_of(text))) == (value, type(value))


def test_a_word_of_a_name() -> None:
    assert value_word("batch", "8") == "batch_8"
    assert value_word("data", "a/b c") == "data_a_b_c"
    assert (value_word("compile", "--compile"), value_word("compile", "")) == ("compile", "no_compile")


def test_an_id_of_a_trial() -> None:
    assert trial_id(7, "lr_1", "torch", False, 2) == "007-lr_1-torch-r2"
    assert trial_id(1234, "a", "none", True, 1, width=4) == "1234-a-none-blocking-r1"
