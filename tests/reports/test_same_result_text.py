"""Whether a changed program computes the same, in words."""

from __future__ import annotations

from typing import get_args

import pytest

from profrun.analysis.compare.same_result import SameResult, Why
from profrun.reports.same_result_text import same_result_text

VARIES = "it has random numbers without a fixed seed, or kernels that add in no fixed order"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (SameResult("same", "loss", 0.0, 1, 1e-5), "loss exactly the same"),
        (SameResult("same", "loss", 2e-4, 7, 1e-3), "loss within 2e-4"),
        (SameResult("same", "output", 2.31e-6, 7, 1e-5), "output within 2.4e-6"),
        (SameResult("same", "parameters", 0.0121, 7, 2e-2), "parameters within 1.3 %"),
        (SameResult("same", "loss", 9.99e-4, 7, 1e-3), "loss within 0.1 %"),
        (
            SameResult("same", "loss", 4e-5, 3, 1e-3, first=3),
            "loss within 4e-5 in its first 3 values; later ones differ between runs of the same program",
        ),
        (
            SameResult("differs", "loss", 0.031, 7, 1e-3, "too-far"),
            "not the same: the loss differs by 3.1 % at value 7 (tolerance 0.1 %)",
        ),
        (
            SameResult("differs", "parameters", 0.5, 2, 1e-5, "too-far", rank=3),
            "not the same: the parameters differ by 50.0 % at value 2 of rank 3 (tolerance 1e-5)",
        ),
        (
            SameResult("differs", "loss", None, 4, 1e-3, "not-finite"),
            "not the same: the loss is not finite at value 4",
        ),
        (
            SameResult("differs", "loss", None, 4, 1e-3, "base-not-finite"),
            "not the same: the loss of the base is not finite at value 4, and this one is",
        ),
        (
            SameResult("differs", "loss", 0.04, 4, 1e-3, "varies"),
            "not the same: its own trials differ, the loss by 4.0 % at value 4",
        ),
    ],
)
def test_same_and_not_the_same(found: SameResult, text: str) -> None:
    assert same_result_text(found) == text


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("nothing-seen", "no loss, no parameters and no output were seen that can be compared"),
        (
            "kinds-differ",
            "one of the two showed losses, parameters or outputs, and the other one another of these",
        ),
        (
            "not-reproducible",
            f"the program computes something else in each run (by 5.0 % at value 3): {VARIES}",
        ),
        (
            "base-once",
            "the loss differs by 5.0 % at value 3, which may be chance, because the base ran once: repeat it",
        ),
    ],
)
def test_not_known(why: Why, text: str) -> None:
    found = SameResult("unknown", "loss", 0.05, 3, 1e-3, why)
    assert same_result_text(found) == f"it is not known whether it computes the same: {text}"


def test_a_faster_program_that_is_not_the_same_is_called_faster_first() -> None:
    differs = SameResult("differs", "loss", 0.031, 7, 1e-3, "too-far")
    assert same_result_text(differs, faster=True).startswith("faster, but not the same: the loss")
    unknown = SameResult("unknown", why="nothing-seen")
    assert same_result_text(unknown, faster=True).startswith("faster, but it is not known whether")
    assert same_result_text(SameResult("same", "loss", 0.0), faster=True) == "loss exactly the same"


def test_a_base_without_one_finite_value_in_each_run_varies() -> None:
    found = SameResult("unknown", "loss", None, 3, 1e-3, "not-reproducible")
    assert same_result_text(found).endswith(f"computes something else in each run: {VARIES}")


@pytest.mark.parametrize("why", get_args(Why))
def test_each_reason_has_a_text_of_its_own(why: Why) -> None:
    texts = {
        same_result_text(SameResult(verdict, "loss", 0.1, 2, 0.01, why)) for verdict in ("differs", "unknown")
    }
    assert len(texts) == 2
