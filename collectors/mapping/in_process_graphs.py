"""What torch.compile is asked to remember of each operation: its name and its nn.Module.

Inductor keeps the Python stacks of the operations in each kernel, as texts, and nothing else of them. Passes
over the graph, before Inductor changes it and just before kernels are made of it, add a line to these texts
and give operations that take the place of others the texts of those. They change nothing else, so the same
kernels are made. Passes of one's own are a documented setting (torch/_inductor/config.py,
``post_grad_custom_post_pass``).
Shipped into the job: standard library only, Python 3.9.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from ...contract.generated_code import operation_text, tells_operation
from ...contract.module_names import ROOT
from .in_process_replaced import STACK, Replacements

_LAST = "post_grad_custom_post_pass"
_BEFORE = {"joint_custom_pre_pass": "joint_custom_post_pass", "post_grad_custom_pre_pass": _LAST}
"""The setting of the pass before Inductor changes a graph -> of the one after that."""
_SEEDS = "inductor_seeds"
_MIXED = "_codegen_mix_order_reduction"
_SUM = "Gradient addition node"
"""In the stacks of sums of gradients (torch/fx/traceback.py, GRADIENT_ACC_SPECIAL_STACK)."""


def install() -> bool:
    """Let all graphs that are compiled from now on keep their operations and modules.

    Returns:
        False where this torch has no such setting, or the program has a pass of its own that is no function.
    """
    try:
        config: Any = importlib.import_module("torch._inductor.config")
    except ImportError:
        return False
    if not _free(config, _LAST):
        return False
    for first, last in _BEFORE.items():
        followed: dict[int, Replacements] = {}
        if _free(config, first) and _free(config, last):
            setattr(config, first, beginning(getattr(config, first), followed))
        if _free(config, last):
            setattr(config, last, ending(getattr(config, last), followed))
    return True


def _free(config: Any, name: str) -> bool:
    before = getattr(config, name, name)
    return before is None or type(before).__name__ == "function"


def beginning(before: Callable[[Any], Any] | None, followed: dict[int, Replacements]) -> Callable[[Any], Any]:
    """The pass that begins to follow a graph, after that of the program.

    Args:
        followed: id of a graph -> what follows it; the new one is added.
    """

    def begin(graph: Any) -> Any:
        found = before(graph) if before is not None else None
        now = found if hasattr(found, "nodes") else graph
        annotate(now)
        followed[id(now)] = Replacements(now)
        return found

    return begin


def ending(before: Callable[[Any], Any] | None, followed: dict[int, Replacements]) -> Callable[[Any], Any]:
    """The pass that tells what is new in a graph, after that of the program."""

    def end(graph: Any) -> Any:
        found = before(graph) if before is not None else None
        now = found if hasattr(found, "nodes") else graph
        replacements = followed.pop(id(now), None)
        if replacements is not None:
            replacements.end(now)
        annotate(now)
        name_mixed_reductions()
        return found

    return end


def name_mixed_reductions() -> None:
    """Let Inductor tell what stands behind kernels that reduce in two directions.

    It gives them no handle, although it knows their name (torch/_inductor/codegen/simd.py of torch 2.11 and
    2.13, ``_codegen_mix_order_reduction``). The handle is a comment in the generated code.
    """
    try:
        scheduling: Any = importlib.import_module("torch._inductor.codegen.triton").TritonScheduling
        before = scheduling.codegen_comment
    except (ImportError, AttributeError):
        return
    if not hasattr(before, "_profrun"):
        scheduling.codegen_comment = named(before)


def named(before: Callable[..., Any]) -> Callable[..., Any]:
    """``codegen_comment`` that knows the kernel's name where the caller has it and does not tell it."""

    def codegen_comment(self: Any, nodes: Any, kernel_name: str | None = None) -> Any:
        if kernel_name is None:
            caller = sys._getframe(1)
            if caller.f_code.co_name == _MIXED:
                kernel_name = getattr(caller.f_locals.get("kernel"), "kernel_name", None)
        return before(self, nodes, kernel_name)

    codegen_comment._profrun = True  # type: ignore[attr-defined]
    return codegen_comment


def annotate(graph: Any) -> None:
    """Tell the operation and the module of each node of which either the stack or the module is known.

    The node that draws the seeds of a graph has no stack: the stacks of what uses the seeds are its own.

    Args:
        graph: a torch.fx.Graph.
    """
    for node in graph.nodes:
        stack, module = node.meta.get(STACK) or "", module_of(node.meta)
        if node.op != "call_function" or not (stack or module) or tells_operation(stack):
            continue
        text = operation_text(str(node.target), module, view=is_view(node.target), gradient_sum=_SUM in stack)
        node.meta[STACK] = "".join(f"{one}\n" for one in (stack.rstrip(), text) if one)
    for node in graph.nodes:
        if not node.meta.get(STACK) and _SEEDS in str(node.target):
            stacks = [user.meta.get(STACK) for user in node.users]
            node.meta[STACK] = "".join(stack for stack in stacks if stack) or None


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
