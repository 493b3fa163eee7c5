"""Nodes that a pass of the compiler puts in the place of others have the texts of those."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from profrun.collectors.mapping.in_process_replaced import STACK, Replacements

if TYPE_CHECKING:
    from torch.fx import Graph, Node


def aten() -> Any:
    """The operations of torch, which takes seconds to import, also for who only collects the tests."""
    import torch

    return torch.ops.aten


def new_graph() -> Graph:
    """A graph without a node."""
    from torch.fx import Graph

    return Graph()


def multiplied_and_added() -> tuple[Graph, Node, Node]:
    """add(x, mm(y, z)), then its sine; each with its name as text."""
    graph = new_graph()
    x, y, z = (graph.placeholder(name) for name in "xyz")
    product = graph.call_function(aten().mm.default, (y, z))
    total = graph.call_function(aten().add.Tensor, (x, product))
    graph.output(graph.call_function(aten().sin.default, (total,)))
    for node in graph.nodes:
        if node.op == "call_function":
            node.meta[STACK] = f"{node.target}\n"
    return graph, product, total


def following(graph: Graph) -> Replacements:
    """The graph as part of a module, whose changes torch tells, and what follows it."""
    import torch

    torch.fx.GraphModule(torch.nn.Module(), graph)
    return Replacements(graph)


def replaced(graph: Graph, old: Node, new: Callable[[], Node], *gone: Node) -> Node:
    """Put a new node in the place of an old one, as Inductor's pattern matcher does."""
    with graph.inserting_before(old):
        one = new()
    old.replace_all_uses_with(one, delete_user_cb=lambda user: user is not one)
    for node in (old, *gone):
        graph.erase_node(node)
    return one


def test_one_in_the_place_of_two_has_the_texts_of_both() -> None:
    graph, product, total = multiplied_and_added()
    x, y, z = list(graph.nodes)[:3]
    follow = following(graph)
    one = replaced(graph, total, lambda: graph.call_function(aten().addmm.default, (x, y, z)), product)
    follow.end(graph)
    assert one.meta[STACK] == "aten.add.Tensor\naten.mm.default\n"
    assert list(graph.nodes)[-2].meta[STACK] == "aten.sin.default\n"


def test_what_replaces_the_replacement_has_them_too() -> None:
    graph, product, total = multiplied_and_added()
    x, y, z = list(graph.nodes)[:3]
    follow = following(graph)
    one = replaced(graph, total, lambda: graph.call_function(aten().addmm.default, (x, y, z)), product)
    two = replaced(graph, one, lambda: graph.call_function(aten().baddbmm.default, (x, y, z)))
    follow.end(graph)
    assert two.meta[STACK] == "aten.add.Tensor\naten.mm.default\n"


def test_a_node_inside_a_replacement_has_the_texts_of_its_end() -> None:
    """A product is padded: both new nodes stand for it."""
    graph, product, total = multiplied_and_added()
    _, y, z = list(graph.nodes)[:3]
    follow = following(graph)
    with graph.inserting_before(product):
        padded = graph.call_function(aten().constant_pad_nd.default, (y, [0, 1]))
    one = replaced(graph, product, lambda: graph.call_function(aten().mm.default, (padded, z)))
    follow.end(graph)
    assert padded.meta[STACK] == one.meta[STACK] == "aten.mm.default\n"
    assert total.meta[STACK] == "aten.add.Tensor\n"


@pytest.mark.parametrize("backwards", [False, True])
def test_a_sum_that_takes_up_the_next_product_leaves_the_first_its_own(backwards: bool) -> None:
    """add(add(x, mm), mm): each addmm stands for one sum and one product."""
    graph = new_graph()
    x, y, z = (graph.placeholder(name) for name in "xyz")
    total, pairs = x, []
    for number in (1, 2):
        product = graph.call_function(aten().mm.default, (y, z))
        product.meta[STACK] = f"mm{number}\n"
        total = graph.call_function(aten().add.Tensor, (total, product))
        total.meta[STACK] = f"add{number}\n"
        pairs.append((total, product))
    graph.output(total)
    follow = following(graph)
    for end, inside in reversed(pairs) if backwards else pairs:
        args = (end.args[0], y, z)
        replaced(graph, end, partial(graph.call_function, aten().addmm.default, args), inside)
    follow.end(graph)
    found = [node.meta[STACK] for node in graph.nodes if node.op == "call_function"]
    assert found == ["add1\nmm1\n", "add2\nmm2\n"]


def test_a_graph_that_nothing_changed_stays_as_it_is() -> None:
    graph, _, _ = multiplied_and_added()
    before = [dict(node.meta) for node in graph.nodes]
    Replacements(graph).end(graph)
    assert [node.meta for node in graph.nodes] == before
