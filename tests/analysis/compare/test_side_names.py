"""Names of two sides: as short as they can be while they tell the sides apart."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial
from profrun.analysis.compare.side_names import side_names
from tests.analysis.compare.trials import trial

STAMP = "-20261122T014813Z-8ece"


def _side(*conditions: dict[str, Any]) -> list[ComparedTrial]:
    return [trial(**one) for one in conditions]


def _of_job(job: str, variant: str, collector: str = "torch", label: str = "0") -> dict[str, Any]:
    return {"job": job + STAMP, "variant": variant, "collector": collector, "label": label}


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ([_of_job("hf", "eager")], [_of_job("hf", "compiled")], ("eager", "compiled")),
        ([_of_job("hf", "default")], [_of_job("dead", "default")], ("hf", "dead")),
        ([_of_job("hf", "x", "none")], [_of_job("hf", "x", "torch")], ("none", "torch")),
        ([_of_job("hf", "x")], [_of_job("gan", "y")], ("hf-x", "gan-y")),
        ([_of_job("hf", "x")], [_of_job("hf", "x") | {"blocking": True}], ("async", "blocking")),
        ([_of_job("hf", "x")], [_of_job("hf", "x") | {"job": "hf-2"}], ("hf", "hf-2")),
        ([{"job": "r1", "label": "t"}], [{"job": "r2", "label": "t"}], ("r1", "r2")),
        ([{"label": "mlp"}], [{"label": "mlp_compile"}], ("mlp", "mlp_compile")),
        (
            [{"label": f"rep{n}_mlp"} for n in (1, 2, 3)],
            [{"label": f"rep{n}_mlp_compile"} for n in (1, 2)],
            ("rep*_mlp", "rep*_mlp_compile"),
        ),
        ([{"label": "one"}, {"label": "two"}, {"label": "six"}], [{"label": "b"}], ("one and 2 more", "b")),
        ([{"label": "a0"}, {"label": "a1"}], [{"label": "b0"}, {"label": "b1"}], ("a*", "b*")),
        ([{"label": "000-default-none-r1"}], [{"label": "000-default-none-r1"}], ("a", "b")),
        # Trials of one side that are of several variants have no variant in common.
        (
            [_of_job("hf", "x", label="x1"), _of_job("hf", "y", label="y1")],
            [_of_job("hf", "z", label="z1")],
            ("x1 and 1 more", "z1"),
        ),
        ([_of_job("hf", "x", label="x1")], [{"label": "t"}], ("x1", "t")),  # b is of no run
    ],
)
def test_names(a: list[dict[str, Any]], b: list[dict[str, Any]], names: tuple[str, str]) -> None:
    assert side_names(_side(*a), _side(*b)) == names
