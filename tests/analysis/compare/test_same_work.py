"""Do two trials do the same work? What was seen counts before what was declared."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.compare import compare
from profrun.analysis.compare.compared_trial import StepWork
from profrun.analysis.compare.same_work import AMOUNT
from tests.analysis.compare.trials import OTHER, stops, trial


@pytest.mark.parametrize(
    ("a", "b", "different"),
    [
        # What was seen counts before what was said: the variant asked for 8, the hook saw 2.
        ({"inputs": "[2, 64] float", "values": {"batch": 8}}, {"inputs": "[2, 64] half"}, False),
        ({"inputs": "[2, 64] float"}, {"inputs": "[4, 64] float"}, True),
        ({"values": {"batch": 8}, "name": "x"}, {"values": {"batch": 16}, "name": "y"}, True),
        (
            {"values": {"batch": 8, "compile": False}, "name": "x"},
            {"values": {"batch": 8, "compile": True}, "name": "y"},
            False,
        ),
        ({"name": "x", "job": "r", "variant": "v"}, {"name": "y", "job": "r", "variant": "v"}, False),
        ({"name": "x"}, {"name": "y"}, True),  # other kernels, and nothing tells
        ({"name": "x"}, {"name": "x"}, False),  # the same kernels with the same grids
        ({"work": StepWork(matrix_flops=1e9)}, {"work": StepWork(matrix_flops=1.01e9)}, False),
        ({"work": StepWork(matrix_flops=1e9)}, {"work": StepWork(matrix_flops=1.1e9)}, True),
        # Recomputation does more FLOPs on the same inputs.
        ({"work": StepWork(3e9), "inputs": "[2] f"}, {"work": StepWork(4e9), "inputs": "[2] f"}, False),
        ({"work": StepWork(1e9), "inputs": "[2] f"}, {"work": StepWork(4e9), "inputs": "[2] f"}, True),
    ],
)
def test_same_work_or_not(a: dict[str, Any], b: dict[str, Any], *, different: bool) -> None:
    nothing = {"work": StepWork()}
    found = compare([trial(**nothing | a)], [trial(OTHER, **nothing | b)])
    assert ("work" in stops(found)) is different


@pytest.mark.parametrize(
    "name", ["batch", "batch_size", "micro_batch", "seq_len", "n_layers", "hidden_dim", "tokens"]
)
def test_amounts(name: str) -> None:
    assert AMOUNT.match(name)


@pytest.mark.parametrize("name", ["precision", "compile", "attention", "lr", "workers", "log_every", "seed"])
def test_no_amounts(name: str) -> None:
    assert not AMOUNT.match(name)
