"""The pass that lets torch.compile keep the operation and the module of each node."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from profrun.collectors.mapping.in_process_generated import generated_code
from profrun.collectors.mapping.in_process_graphs import (
    annotate,
    beginning,
    ending,
    install,
    is_view,
    module_of,
    name_mixed_reductions,
    named,
)
from profrun.contract.generated_code import GeneratedCall

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph


class Pass:
    """A pass of the program that is no function."""


def inductor_settings() -> Any:
    """The settings of the compiler. It takes seconds to import, also for who only collects the tests."""
    return importlib.import_module("torch._inductor.config")


def aten() -> Any:
    """The operations of torch, which takes seconds to import, too."""
    import torch

    return torch.ops.aten


def new_graph() -> Graph:
    """A graph without a node."""
    from torch.fx import Graph

    return Graph()


def graph() -> Graph:
    """x.sin() in module layers.0 of the forward, and a node without a stack."""
    found = new_graph()
    x = found.placeholder("x")
    sine = found.call_function(aten().sin.default, (x,))
    sine.meta.update(
        stack_trace='  File "m.py", line 3, in forward\n    x.sin()\n',
        nn_module_stack={"a": ("L['self']", "Net"), "b": ("L['self'].layers.0", "Block")},
    )
    found.call_function(aten().cos.default, (sine,))
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
    import torch

    found = new_graph()
    seeds = found.call_function(torch.rand, (2,))
    seeds.target = "prims.inductor_seeds.default"
    for line in (3, 4):
        user = found.call_function(aten().sin.default, (seeds,))
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
    import torch

    views = (aten().reshape.default, aten().permute.default, aten().expand.default, aten().slice.Tensor)
    work = (aten().clone.default, aten().add_.Tensor, aten().mm.default, aten().copy_.default)
    assert [is_view(one) for one in (*views, *work)] == [True] * 4 + [False] * 4
    assert is_view(SimpleNamespace(__name__="getitem"))
    assert not is_view(torch.sin)


def test_a_pass_of_the_program_runs_first_and_its_answer_counts() -> None:
    seen: list[bool] = []
    other = graph()

    def own(one: Graph) -> Graph:
        seen.append("Operation" in list(one.nodes)[1].meta["stack_trace"])
        return other

    for made in (beginning(own, {}), ending(own, {})):
        other = graph()
        assert made(graph()) is other
        assert "Operation" in list(other.nodes)[1].meta["stack_trace"]
    assert seen == [False, False]


def test_a_node_without_a_stack_tells_its_module_and_a_sum_of_gradients_itself() -> None:
    one = graph()
    _, sine, _ = one.nodes
    del sine.meta["stack_trace"]
    annotate(one)
    assert sine.meta["stack_trace"] == '  Operation "aten.sin.default", module "layers.0"\n'
    other = graph()
    _, sine, _ = other.nodes
    sine.meta["stack_trace"] = (
        "Gradient addition node due to multiple use of tensor around:\n" + (sine.meta["stack_trace"])
    )
    annotate(other)
    annotate(other)
    assert sine.meta["stack_trace"].count(", a sum of gradients") == 1


def test_a_setting_is_taken_where_it_is_free_or_a_function() -> None:
    config = inductor_settings()
    names = ("joint_custom_pre_pass", "joint_custom_post_pass", "post_grad_custom_pre_pass")
    free = {**dict.fromkeys(names), "post_grad_custom_post_pass": None}
    with config.patch(free):
        assert install()
        assert all(callable(getattr(config, name)) for name in free)
    with config.patch({**free, "post_grad_custom_post_pass": Pass()}):
        assert not install()
        assert isinstance(config.post_grad_custom_post_pass, Pass)
    with config.patch({**free, "joint_custom_post_pass": Pass()}):
        assert install()
        assert config.joint_custom_pre_pass is None


def test_a_reduction_in_two_directions_is_named_where_inductor_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in torch 2.11 and 2.13, which has the name at hand."""
    told: list[str | None] = []

    class Scheduling:
        def codegen_comment(self, _nodes: object, kernel_name: str | None = None) -> None:
            told.append(kernel_name)

        def _codegen_mix_order_reduction(self) -> None:
            kernel = SimpleNamespace(kernel_name="triton_per_fused_1")
            self.codegen_comment([kernel], None)

        def codegen_other(self) -> None:
            kernel = SimpleNamespace(kernel_name="triton_per_fused_2")
            self.codegen_comment([kernel], None)
            self.codegen_comment([kernel], "triton_3")

    monkeypatch.setattr(Scheduling, "codegen_comment", named(Scheduling.codegen_comment))
    Scheduling()._codegen_mix_order_reduction()
    Scheduling().codegen_other()
    assert told == ["triton_per_fused_1", None, "triton_3"]


def test_inductor_is_asked_once_and_has_what_this_builds_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names in torch itself: where they change, this fails, and kernels lose their lines."""
    from torch._inductor.codegen.simd import SIMDScheduling
    from torch._inductor.codegen.triton import TritonScheduling

    monkeypatch.setattr(TritonScheduling, "codegen_comment", TritonScheduling.codegen_comment)
    name_mixed_reductions()
    once = TritonScheduling.codegen_comment
    name_mixed_reductions()
    assert TritonScheduling.codegen_comment is once
    text = inspect.getsource(SIMDScheduling._codegen_mix_order_reduction)
    assert "self.codegen_comment(node_schedule, None)" in text
    assert "kernel.kernel_name = kernel_name" in text
    assert ".view({nsplit}, {rnumel}).{opname}(dim=0)" in text


def compiled(run: Callable[[], object], cache: Path) -> list[GeneratedCall]:
    """Run something that compiles, with the passes; what the generated code calls."""
    settings = {
        "trace.provenance_tracking_level": 1,
        "fx_graph_cache": False,
        "joint_custom_pre_pass": None,
        "joint_custom_post_pass": None,
        "post_grad_custom_pre_pass": None,
        "post_grad_custom_post_pass": None,
    }
    with inductor_settings().patch(settings):
        assert install()
        run()
    return [call for file in generated_code().files if str(cache) in file.path for call in file.calls]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_compiled_program_keeps_its_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Real torch.compile, on the CPU: a fused kernel has the lines and modules of its operations."""
    import torch

    class Net(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = torch.nn.functional.gelu(layer(x))
            return x

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    found = compiled(lambda: torch.compile(Net())(torch.randn(8, 64)).sum().backward(), tmp_path)
    multiplied = [call for call in found if "mm:" in call.kernel or "linear" in call.kernel]
    assert {one.module for call in multiplied for one in call.operations} == {"layers.0", "layers.1"}
    files = {one.stack[-1].file for call in found for one in call.operations if not one.view}
    assert files == {__file__}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_product_that_takes_up_a_sum_of_gradients_keeps_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Inductor makes one ``addmm`` of a product and the sum of two gradients, and loses their stacks."""
    import torch

    def two(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        a = y @ w
        return a * (y @ u)

    def run() -> None:
        x, w, u = (torch.randn(size, 64, requires_grad=True) for size in (128, 64, 64))
        torch.compile(two)(x, w, u).square().mean().backward()

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    found = compiled(run, tmp_path)
    (sums,) = [call.operations for call in found if call.kernel.startswith("extern_kernels.addmm")]
    assert sorted((one.name, one.gradient_sum) for one in sums) == [
        ("aten.add.Tensor", True),
        ("aten.mm.default", False),
    ]
    first = two.__code__.co_firstlineno
    assert {one.stack[-1].line for one in sums if not one.gradient_sum} <= {first + 2, first + 3}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_layers_of_a_library_have_modules_where_they_have_no_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An nn.Sequential has no line of the program inside, and dynamo keeps none of torch.nn's."""
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    found = compiled(lambda: torch.compile(net)(torch.randn(8, 64)).sum().backward(), tmp_path)
    assert {one.module for call in found for one in call.operations if not one.view} == {"0", "1", "2"}
    assert {one.stack for call in found for one in call.operations} == {()}
    assert all(call.operations for call in found)
