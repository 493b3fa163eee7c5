"""Which moments are the ends of steps. A state machine without torch in it.

Three signs, by authority: ``profrun.step()`` (explicit), an optimizer's step, a root module's forward. In
``auto`` the highest sign seen so far counts and the lower ones are ignored:

* explicit: each call ends a step.
* optimizer: each step of the leading optimizer (the first that stepped) ends a step, so gradient
  accumulation is one step and several optimizers do not count double. Another optimizer takes the lead
  when the leader is gone, or when it stepped eight times without the leader.
* module: a step ends when a root module is called that was already called in this step. A forward that
  builds a graph while an optimizer exists ends no step for 64 times: the optimizer is expected to step.

When a higher sign shows up after lower ones ended steps, those are forgotten and the first step reaches from
where it began to here, unless recording has begun: then the lower sign stays. One optimizer step followed by
``profrun.step()`` is the same step seen twice and ends once.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from ..contract.steps import StepSign
    from .torch_types import Module, Optimizer

RANKS = {"none": 0, "module": 1, "optimizer": 2, "explicit": 3}
PATIENCE = 64
LEAD = 8


class StepFinder:
    """Turns signs into step ends.

    Args:
        mode: auto, or the only sign that counts: explicit, optimizer, module; off counts nothing.
        begin: called once, when the first step begins.
        ended: called at each step's end, when the next one has begun.
        restart: asked to forget all steps so far; returns False when it is too late for that.
    """

    def __init__(
        self, mode: str, begin: Callable[[], None], ended: Callable[[], None], restart: Callable[[], bool]
    ) -> None:
        self.mode = mode
        self.how: StepSign = "none"
        self.count = 0
        self.began = False
        self.kept_lower: str | None = None
        self.optimizers = 0
        self._begin = begin
        self._ended = ended
        self._restart = restart
        self._leader: weakref.ref[Optimizer] | None = None
        self._others = 0
        self._called: dict[int, weakref.ref[Module]] = {}
        self._waited = 0

    def explicit(self) -> None:
        """``profrun.step()`` was called."""
        if self._allowed("explicit"):
            self._sign("explicit")

    def optimizer_made(self) -> None:
        """An optimizer exists: the process is going to train."""
        self.optimizers += 1

    def optimizer(self, optimizer: Optimizer) -> None:
        """An optimizer's step has returned."""
        if not self._allowed("optimizer"):
            return
        leader = self._leader() if self._leader is not None else None
        if leader is not None and leader is not optimizer:
            self._others += 1
            if self._others < LEAD:
                return
        self._others = 0
        if leader is not optimizer:
            self._leader = weakref.ref(optimizer)
        self._sign("optimizer")

    def root(self, module: Module, *, grad: bool) -> None:
        """A root module's forward begins; ``grad``: it builds a graph, as training does."""
        self.start()
        if not self._allowed("module"):
            return
        known = self._called.get(id(module))
        if known is None or known() is not module:
            self._called[id(module)] = weakref.ref(module)
            return
        if grad and self.how == "none" and self.optimizers and self.mode == "auto":
            self._waited += 1
            if self._waited < PATIENCE:
                return
        self._called = {id(module): weakref.ref(module)}
        self._sign("module")

    def start(self) -> None:
        """The first step begins now, if none has."""
        if not self.began and self.mode != "off":
            self.began = True
            self._begin()

    @property
    def undecided(self) -> bool:
        """Whether a root module's forward could still tell something."""
        return self.mode in ("auto", "module") and RANKS[self.how] <= RANKS["module"]

    @property
    def saw_forward(self) -> bool:
        """Whether a root module ran in the open step, as far as forwards matter."""
        return bool(self._called)

    def close_last(self) -> bool:
        """The program ends: where forwards are steps, the open one ended with its last forward."""
        if not self._called or not self._allowed("module") or self.how not in ("none", "module"):
            return False
        self.how = "module"
        self.count += 1
        return True

    def _allowed(self, sign: str) -> bool:
        if self.mode == "auto":
            return RANKS[sign] >= RANKS[self.how] and self.kept_lower != sign
        return self.mode == sign

    def _sign(self, sign: StepSign) -> None:
        self.start()
        if self.how not in ("none", sign) and self.count:
            if self.count == 1 and self.how == "optimizer":
                self.how = sign
                return
            if not self._restart():
                self.kept_lower = sign
                return
            self.count = 0
        self.how = sign
        self.count += 1
        self._ended()
