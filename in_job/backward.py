"""Ranges round the backward of modules, seen from autograd's own nodes.

``register_full_backward_hook`` is not used: it wraps a module's inputs and outputs in a function of its
own, which changes the graph and makes in-place operations on an output an error. Instead a pre-hook on the
node that made a module's output opens the range (autograd runs it when the gradient arrives there), and
the module's backward is over at the first of: the node that made its input runs; a module that is not
inside it begins its backward (autograd goes backwards through the forward's order); the whole backward
ends. Ranges are opened and closed by the thread that runs the backward, which is not the forward's on a GPU.
A module whose output has no gradient function has no backward range.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sink import Sink
    from .torch_types import Tensor, Torch, Values

SUFFIX = " backward"
_KEY = "profrun"


class _Call:
    """One forward call of a module and the state of its backward."""

    __slots__ = ("label", "parent", "state")

    def __init__(self, label: str, parent: _Call | None) -> None:
        self.label = label
        self.parent = parent
        self.state = "waiting"  # waiting, open, over

    def inside(self, other: _Call) -> bool:
        """Whether this call happened inside another."""
        call: _Call | None = self
        while call is not None:
            if call is other:
                return True
            call = call.parent
        return False


class _Node:
    """When autograd gets here: calls whose input this node made end, calls whose output it made begin."""

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.ends: list[_Call] = []
        self.starts: list[_Call] = []


class _Threads(threading.local):
    def __init__(self) -> None:
        self.forward: list[_Call] = []
        self.open: list[_Call] = []  # backward ranges of this thread, outermost first


class BackwardRanges:
    """Follows forward calls (``enter``/``leave``) and opens ranges when their backward runs."""

    def __init__(self, torch: Torch, sink: Sink) -> None:
        self.torch = torch
        self.sink = sink
        self._threads = _Threads()
        self._queued: set[int] = set()  # threads that a callback at the end of the backward will tidy

    def enter(self, label: str, inputs: Values) -> None:
        """A module's forward begins."""
        stack = self._threads.forward
        call = _Call(label, stack[-1] if stack else None)
        stack.append(call)
        if self.torch.is_grad_enabled():
            for node in self._nodes(inputs):
                node.ends.append(call)

    def leave(self, label: str, output: Values) -> None:
        """A module's forward ends; ``output`` is None after an exception."""
        stack = self._threads.forward
        call: _Call | None = None
        while stack and (call is None or call.label != label):
            call = stack.pop()
        if call is None or call.label != label:
            return
        if output is not None and self.torch.is_grad_enabled():
            for node in self._nodes(output):
                node.starts.append(call)

    def _nodes(self, values: Values) -> Iterator[_Node]:
        """Our record at the node behind each tensor, made and hooked on first sight."""
        for tensor in self._tensors(values, 3):
            function = tensor.grad_fn
            if function is None or not hasattr(function, "register_prehook"):
                continue
            record = function.metadata.get(_KEY)
            if record is None:
                record = function.metadata[_KEY] = _Node()
                function.register_prehook(self._hook(record))
            yield record

    def _tensors(self, values: Values, depth: int) -> Iterator[Tensor]:
        if isinstance(values, self.torch.Tensor):
            yield values
        elif depth and isinstance(values, (tuple, list)):
            for value in values:
                yield from self._tensors(value, depth - 1)
        elif depth and isinstance(values, dict):
            for value in values.values():
                yield from self._tensors(value, depth - 1)

    def _hook(self, record: _Node) -> Callable[[Values], None]:
        def reached(_gradients: Values) -> None:
            if not self.sink.emitting:
                return
            for call in record.ends:
                self._end(call)
            for call in reversed(record.starts):  # outer modules left their forward last
                self._start(call)

        return reached

    def _start(self, call: _Call) -> None:
        if call.state != "waiting":
            return
        opened = self._threads.open
        while opened and not call.inside(opened[-1]):
            self._close_last()
        call.state = "open"
        opened.append(call)
        self.sink.push(call.label + SUFFIX)
        thread = threading.get_ident()
        if thread not in self._queued:
            self._queued.add(thread)
            self.torch.autograd.Variable._execution_engine.queue_callback(lambda: self._over(thread))

    def _end(self, call: _Call) -> None:
        opened = self._threads.open
        if call.state == "open" and call in opened:
            while opened[-1] is not call:
                self._close_last()
            self._close_last()
        call.state = "over"

    def _close_last(self) -> None:
        call = self._threads.open.pop()
        call.state = "over"
        self.sink.pop(call.label + SUFFIX)

    def _over(self, thread: int) -> None:
        """The whole backward has ended. NVTX ranges can only be closed by the thread that opened them."""
        self._queued.discard(thread)
        if thread != threading.get_ident():
            return  # closed when that thread begins its next backward
        while self._threads.open:
            self._close_last()
