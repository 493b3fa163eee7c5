"""What steps gain without fills of ``zero_grad()``: steps of 100 us whose GPU works from 6 us on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profrun.analysis.rules import gradients
from profrun.analysis.rules.context import Context
from profrun.traces.trace import Trace
from tests.analysis.kit import Row
from tests.analysis.rules.cases import ADD, FILL, NVJET, US, gpu
from tests.analysis.rules.test_diagnose import ask

ZERO_GRAD = "Optimizer.zero_grad#AdamW.zero_grad"
ACCUMULATE = "torch::autograd::AccumulateGrad"


def test_the_fills_and_the_additions_go() -> None:
    """Of two additions, one is the program's own. A fill inside of a fill is the same fill."""
    host: list[Row] = [
        ("range", ZERO_GRAD, 0, 5 * US, "main"),
        ("op", "aten::_foreach_zero_", 0, 4 * US, "main"),
        ("op", "aten::zero_", 0, 3 * US, "main"),
        ("op", ACCUMULATE, 60 * US, 5 * US, "main"),
        ("op", "aten::add_", 60 * US, 4 * US, "main"),
        ("op", "aten::add_", 86 * US, 4 * US, "main"),
    ]
    work = [
        (FILL, 6 * US, 10 * US),
        (NVJET, 16 * US, 50 * US),
        (ADD, 66 * US, 25 * US),
        (ADD, 91 * US, 5 * US),
    ]
    (found,) = ask(gpu(work, host=host), "zeroed-gradients")
    assert found.evidence["fills"] == found.evidence["additions"] == 3
    assert found.evidence["total_ns"] == 3 * (10 + 25) * US
    assert found.gain is not None
    assert found.gain.ns == pytest.approx((10 + 25) * US, rel=0.05)


@pytest.mark.parametrize("range_name", ["Optimizer.step#AdamW.step", "warm-up"])
def test_a_tensor_that_the_program_fills_with_zeros_is_none(range_name: str) -> None:
    host: list[Row] = [
        ("range", range_name, 0, 5 * US, "main"),
        ("op", "aten::zero_", 0, 4 * US, "main"),
        ("op", ACCUMULATE, 60 * US, 5 * US, "main"),
        ("op", "aten::add_", 60 * US, 4 * US, "main"),
    ]
    work = [(FILL, 6 * US, 10 * US), (NVJET, 16 * US, 50 * US), (ADD, 66 * US, 25 * US)]
    assert ask(gpu(work, host=host), "zeroed-gradients") == []


@pytest.mark.thorough
def test_of_resnet50_each_parameter_is_filled_and_added_to(
    real: Callable[..., Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six steps of 161 parameters, in a recording of PyTorch 1.8; 0.4 % of the step is too little to tell."""
    context = Context(real("nvidia/kineto-tb/resnet50_nw0.pt.trace.json.gz"))
    assert list(gradients.zeroed_gradients.find(context)) == []
    monkeypatch.setattr(gradients, "LEAST_SHARE", 0.0)
    (hit,) = gradients.zeroed_gradients.find(context)
    assert hit.numbers["fills"] == hit.numbers["additions"] == 6 * 161
    assert hit.gain is not None
    assert hit.gain.share == pytest.approx(0.004, abs=0.0005)
