"""What a pass of the compiler has put in the place of what: ``Replacements``.

Inductor replaces operations by others, as ``mm`` and ``add`` by ``addmm``, and the new ones lose the Python
stack and the module of the old ones, or keep those of one of them (torch/_inductor/pattern_matcher.py,
``ReplacementPatternEntry``). The graph tells each node that takes the place of another
(torch/fx/graph_module.py, ``_register_replace_node_hook``).
Shipped into the job: standard library only, Python 3.9.
"""

from __future__ import annotations

from typing import Any

STACK = "stack_trace"


class Replacements:
    """Follows a graph from one moment of its compilation to another.

    Args:
        graph: a torch.fx.Graph whose nodes have texts that tell their operations (``STACK`` in ``meta``).
    """

    def __init__(self, graph: Any) -> None:
        self._texts = {node.name: node.meta.get(STACK) for node in graph.nodes}
        self._inputs = {node.name: _names(node.all_input_nodes) for node in graph.nodes}
        self._by: dict[str, str] = {}
        self._module = graph.owning_module
        if hasattr(self._module, "_register_replace_node_hook"):
            self._module._register_replace_node_hook(self._replaced)

    def end(self, graph: Any) -> None:
        """Give the nodes that are new the texts of all nodes that they stand for."""
        if hasattr(self._module, "_unregister_replace_node_hook"):
            self._module._unregister_replace_node_hook(self._replaced)
        left = {node.name for node in graph.nodes}
        sources: dict[str, list[str]] = {}
        for old, new in self._by.items():
            if old not in left:
                sources.setdefault(new, []).append(old)
        behind: dict[str, list[str]] = {}
        for node in reversed(list(graph.nodes)):
            if node.name in self._texts:
                continue
            # What a replacement of several nodes has inside stands for the same as its end.
            after = [name for user in _names(node.users) for name in behind.get(user, ())]
            found = self._origins(sources.get(node.name, []), sources, left) or list(dict.fromkeys(after))
            behind[node.name] = found
            text = "".join(self._texts[name] or "" for name in found)
            if text:
                node.meta[STACK] = text

    def _replaced(self, old: Any, new: str, user: Any) -> None:
        """Called by torch for each user of a node that gets another one in its place."""
        self._by[old.name] = new
        self._inputs.setdefault(old.name, _names(old.all_input_nodes))

    def _origins(self, ends: list[str], sources: dict[str, list[str]], left: set[str]) -> list[str]:
        """The nodes of the first moment behind nodes that are gone: these, and what went with them.

        Args:
            ends: the nodes that a new node took the place of.
            sources: the same for every new node.
            left: the nodes of the graph at the last moment.
        """
        waiting, seen = list(ends), set(ends)
        found = []
        while waiting:
            name = waiting.pop()
            if name in self._texts:
                found.append(name)
            gone = [one for one in self._inputs.get(name, ()) if self._last(one) not in left]
            more = [one for one in (*gone, *sources.get(name, ())) if one not in seen]
            seen.update(more)
            waiting.extend(more)
        return found

    def _last(self, name: str) -> str:
        """The node that has the place of this one in the end."""
        passed = {name}
        while self._by.get(name, name) not in passed:
            name = self._by[name]
            passed.add(name)
        return name


def _names(nodes: Any) -> list[str]:
    return [node.name for node in nodes]
