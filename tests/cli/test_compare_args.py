"""The words of a comparison, divided at ``vs``."""

from __future__ import annotations

import pytest

from profrun.cli.compare_args import split_sides
from profrun.errors import UsageError


def test_words_are_divided_at_vs() -> None:
    assert split_sides(["a0", "a1", "vs", "b0"]) == (["a0", "a1"], ["b0"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "b"], "it is there 0 times"),
        (["a", "vs", "b", "vs", "c"], "it is there 2 times"),
        (["vs", "b"], "nothing before 'vs'"),
        (["a", "vs"], "nothing after 'vs'"),
    ],
)
def test_words_that_name_no_two_sides(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        split_sides(words)
