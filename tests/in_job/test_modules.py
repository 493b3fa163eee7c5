"""Which modules get ranges: depth counts modules that are called."""

from __future__ import annotations

from collections.abc import Iterator

from profrun.in_job.modules import selected


class Module:
    """What ``selected`` asks of an nn.Module."""

    def __init__(self, **children: Module) -> None:
        self.children = children

    def forward(self) -> None:
        """Something to call."""

    def named_children(self) -> Iterator[tuple[str, Module]]:
        yield from self.children.items()


def _forward_unimplemented(_self: Module) -> None:
    """The name of torch's method in modules that only hold others."""


class ModuleList(Module):
    forward = _forward_unimplemented


def names(root: Module, depth: int) -> list[str]:
    return [name or "root" for name, _ in selected(root, depth)]


def test_lists_add_nothing_to_the_depth_and_have_no_range() -> None:
    block = {"attn": Module(c_attn=Module()), "mlp": Module()}
    blocks = ModuleList(**{"0": Module(**block), "1": Module(**block)})
    gpt = Module(transformer=Module(wte=Module(), h=blocks, nested=ModuleList(a=ModuleList(b=Module()))))
    assert names(gpt, 1) == ["root", "transformer"]
    assert names(gpt, 2) == [
        "root", "transformer", "transformer.wte", "transformer.h.0", "transformer.h.1",
        "transformer.nested.a.b",
    ]  # fmt: skip
    assert "transformer.h.0.attn" in names(gpt, 3)
    assert "transformer.h.0.attn.c_attn" not in names(gpt, 3)
    assert "transformer.h.0.attn.c_attn" in names(gpt, 4)


def test_a_module_that_occurs_twice_has_one_range() -> None:
    shared = Module()
    assert names(Module(a=shared, b=shared), 1) == ["root", "a"]
