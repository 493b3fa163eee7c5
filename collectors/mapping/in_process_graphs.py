"""What torch.compile is asked to remember of each operation: its name and its nn.Module.

Inductor keeps the Python stacks of the operations in each kernel, as texts, and nothing else of them. A pass
over the graph, just before kernels are made of it, adds a line to these texts. It changes nothing else, so
the same kernels are made. Passes of one's own are a documented setting (torch/_inductor/config.py,
``post_grad_custom_post_pass``).
Shipped into the job: standard library only, Python 3.9.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ...contract.generated_code import operation_text
from ...contract.module_names import ROOT

_SETTING = "post_grad_custom_post_pass"
_SEEDS = "inductor_seeds"


def install() -> bool:
    """Let all graphs that are compiled from now on keep their operations and modules.

    Returns:
        False where this torch has no such setting, or the program has a pass of its own that is no function.
    """
    try:
        config: Any = importlib.import_module("torch._inductor.config")
        before = getattr(config, _SETTING)
    except (ImportError, AttributeError):
        return False
    if before is not None and type(before).__name__ != "function":
        return False
    setattr(config, _SETTING, chained(before))
    return True


def chained(before: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """The pass that adds the texts, after that of the program."""

    def add(graph: Any) -> Any:
        found = before(graph) if before is not None else None
        annotate(found if hasattr(found, "nodes") else graph)
        return found

    return add


def annotate(graph: Any) -> None:
    """Add the line to the stack of each node that has one.

    The node that draws the seeds of a graph has no stack: the stacks of what uses the seeds are its own.

    Args:
        graph: a torch.fx.Graph.
    """
    for node in graph.nodes:
        stack = node.meta.get("stack_trace")
        if node.op == "call_function" and stack:
            text = operation_text(str(node.target), module_of(node.meta), view=is_view(node.target))
            node.meta["stack_trace"] = f"{stack.rstrip()}\n{text}\n"
    for node in graph.nodes:
        if not node.meta.get("stack_trace") and _SEEDS in str(node.target):
            stacks = [user.meta.get("stack_trace") for user in node.users]
            node.meta["stack_trace"] = "".join(stack for stack in stacks if stack) or None


def module_of(meta: Any) -> str | None:
    """The qualified name of the innermost module of a node, below the module that was compiled.

    Its names begin with an expression of the frame, ``L['self'].layers.0``. Nodes of the backward have the
    modules of their forward. Where gradients are added up, no module is told.
    """
    modules = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack")
    if not modules:
        return None
    name = str(list(modules.values())[-1][0])
    return name.partition(".")[2].replace('"', "'") or ROOT


def is_view(target: Any) -> bool:
    """Whether an operation only looks at its input in another way, as its schema tells."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return getattr(target, "__name__", "") == "getitem"
    aliases = [one.alias_info for one in schema.arguments if one.alias_info is not None]
    return bool(aliases) and not any(one.is_write for one in aliases)
