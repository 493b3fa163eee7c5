"""The pass that lets torch.compile keep the operation and the module of each node."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._inductor.config as config
from torch.fx import Graph

from profrun.collectors.mapping.in_process_generated import generated_code
from profrun.collectors.mapping.in_process_graphs import annotate, chained, install, is_view, module_of

ATEN = torch.ops.aten


class Pass:
    """A pass of the program that is no function."""


def graph() -> Graph:
    """x.sin() in module layers.0 of the forward, and a node without a stack."""
    found = Graph()
    x = found.placeholder("x")
    sine = found.call_function(ATEN.sin.default, (x,))
    sine.meta.update(
        stack_trace='  File "m.py", line 3, in forward\n    x.sin()\n',
        nn_module_stack={"a": ("L['self']", "Net"), "b": ("L['self'].layers.0", "Block")},
    )
    found.call_function(ATEN.cos.default, (sine,))
    return found


def test_a_stack_gets_a_line_and_nothing_else_changes() -> None:
    one = graph()
    before = str(one)
    annotate(one)
    _, sine, cosine = one.nodes
    assert sine.meta["stack_trace"] == (
        '  File "m.py", line 3, in forward\n    x.sin()\n  Operation "aten.sin.default", module "layers.0"\n'
    )
    assert "stack_trace" not in cosine.meta
    assert str(one) == before


def test_the_seeds_of_a_graph_come_from_what_uses_them() -> None:
    found = Graph()
    seeds = found.call_function(torch.rand, (2,))
    seeds.target = "prims.inductor_seeds.default"
    for line in (3, 4):
        user = found.call_function(ATEN.sin.default, (seeds,))
        user.meta["stack_trace"] = f'  File "m.py", line {line}, in forward\n'
    annotate(found)
    text = seeds.meta["stack_trace"]
    assert ("line 3" in text, "line 4" in text, text.count("Operation")) == (True, True, 2)


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"nn_module_stack": {"a": ("L['self'].h.0", "A"), "b": ("L['self'].h.0.mlp", "B")}}, "h.0.mlp"),
        ({"fwd_nn_module_stack": {"a": ("L['self'].h.0", "A")}}, "h.0"),
        ({"nn_module_stack": {"a": ("L['self']", "Net")}}, "root"),
        ({}, None),
    ],
)
def test_the_module_of_a_node(meta: dict[str, Any], expected: str | None) -> None:
    assert module_of(meta) == expected


def test_a_view_is_told_by_its_schema() -> None:
    views = (ATEN.reshape.default, ATEN.permute.default, ATEN.expand.default, ATEN.slice.Tensor)
    work = (ATEN.clone.default, ATEN.add_.Tensor, ATEN.mm.default, ATEN.copy_.default)
    assert [is_view(one) for one in (*views, *work)] == [True] * 4 + [False] * 4
    assert is_view(SimpleNamespace(__name__="getitem"))
    assert not is_view(torch.sin)


def test_a_pass_of_the_program_runs_first_and_its_answer_counts() -> None:
    seen: list[str] = []
    other = graph()

    def own(one: Graph) -> Graph:
        seen.append(list(one.nodes)[1].meta["stack_trace"])
        return other

    assert chained(own)(graph()) is other
    assert "Operation" not in seen[0]
    assert "Operation" in list(other.nodes)[1].meta["stack_trace"]


def test_the_setting_is_taken_where_it_is_free_or_a_function() -> None:
    with config.patch(post_grad_custom_post_pass=None):
        assert install()
        assert callable(config.post_grad_custom_post_pass)
    with config.patch(post_grad_custom_post_pass=Pass()):
        assert not install()
        assert isinstance(config.post_grad_custom_post_pass, Pass)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_compiled_program_keeps_its_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Real torch.compile, on the CPU: a fused kernel has the lines and modules of its operations."""

    class Net(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = torch.nn.functional.gelu(layer(x))
            return x

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    settings = {
        "trace.provenance_tracking_level": 1,
        "fx_graph_cache": False,
        "post_grad_custom_post_pass": None,
    }
    with config.patch(settings):
        assert install()
        torch.compile(Net())(torch.randn(8, 64)).sum().backward()
    found = [call for file in generated_code().files if str(tmp_path) in file.path for call in file.calls]
    multiplied = [call for call in found if "mm:" in call.kernel or "linear" in call.kernel]
    assert {one.module for call in multiplied for one in call.operations} == {"layers.0", "layers.1"}
    files = {one.stack[-1].file for call in found for one in call.operations if not one.view}
    assert files == {__file__}
