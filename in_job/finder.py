"""Which moments are the ends of steps. A state machine without torch in it.

Signs on four levels of authority, of which the highest that ended a step so far counts in ``auto``:

* explicit: each ``profrun.step()`` ends a step.
* optimizer: each step of the leading optimizer (the first that stepped) ends a step, so gradient
  accumulation is one step and several optimizers do not count double. Another optimizer takes the lead
  when the leader is gone, or when it stepped eight times without the leader.
* module: a step ends when a root module is called that was already called in this step.
* compiled, jit, graph: the same rule for functions of torch.compile and of jax.jit and for replays of CUDA
  graphs that run in no root module and in no other such call. They share a level because each is what a
  program has in the place of a module: where a compiled prefill and the graph of a decoding step take
  turns, a token is a step, as it is where both are calls of one module. ``how`` is the first that ended one.
* loader: each batch that the leading DataLoader delivers ends a step. The lowest, because a program may
  fetch batches without working on them (statistics, copying the data set), and because work is more often
  repeated for one batch than the reverse; it says where an iteration begins when all else is eager code.

What keeps a lower sign from ending steps that a higher one will end:

* A sign from module downwards ends none for 64 times while an optimizer exists and graphs for backward are
  built: the optimizer is expected to step.
* A sign from compiled downwards ends no first step where a higher one was seen within its last eight times.
* Whatever was called before a CUDA graph is captured was its warm-up, if the graph is then replayed twice
  with nothing else in between: at most sixteen steps are forgotten, and the replays count. A graph that
  holds an optimizer's step is not expected to be followed by one.

When a higher sign shows up after lower ones ended steps, those are forgotten and the first step reaches from
where it began to here, unless recording has begun: then the lower sign stays. One optimizer step followed by
``profrun.step()`` is the same step seen twice and ends once.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from ..contract.steps import StepSign
    from .torch_types import Optimizer

LEVELS: dict[str, int] = {
    "none": 0,
    "loader": 1,
    "graph": 2,
    "jit": 2,
    "compiled": 2,
    "module": 3,
    "optimizer": 4,
    "explicit": 5,
}
PATIENCE = 64
LEAD = 8
WARM_UP = 16


class StepFinder:
    """Turns signs into step ends.

    Args:
        mode: auto, or the only sign that counts; off counts nothing.
        begin: called once, when the first step begins.
        ended: called at each step's end, when the next one has begun.
        restart: asked to forget all steps so far; returns False when it is too late for that.

    Attributes:
        how: the sign that ends steps.
        count: steps that have ended.
        kept_lower: a higher sign that came too late to end steps.
        late_capture: the sign whose steps were a graph's warm-up and are recorded.
    """

    def __init__(
        self, mode: str, begin: Callable[[], None], ended: Callable[[], None], restart: Callable[[], bool]
    ) -> None:
        self.mode = mode
        self.how: StepSign = "none"
        self.count = 0
        self.began = False
        self.kept_lower: str | None = None
        self.late_capture: str | None = None
        self.optimizers = 0
        self._begin = begin
        self._ended = ended
        self._restart = restart
        self._leaders: dict[str, weakref.ref[Any]] = {}
        self._others: dict[str, int] = {}
        self._called: dict[int, tuple[weakref.ref[Any], StepSign]] = {}  # in the open step
        self._waited: dict[int, int] = {}  # by level
        self._hidden: dict[int, int] = {}  # by level: how often it is not looked at
        self._capturing = self._captured = False
        self._delivered = self._exhausted = False

    def explicit(self) -> None:
        """``profrun.step()`` was called."""
        if self._allowed("explicit"):
            self._sign("explicit")

    def optimizer_made(self) -> None:
        """An optimizer exists: the process is going to train."""
        self.optimizers += 1

    def optimizer(self, optimizer: Optimizer) -> None:
        """An optimizer's step has returned."""
        if self._capturing:
            self._waited[LEVELS["graph"]] = PATIENCE
            return
        self._captured = False
        if self._allowed("optimizer") and self._leads("optimizer", optimizer):
            self._sign("optimizer")

    def called(self, sign: StepSign, thing: object, *, grad: bool = False) -> None:
        """A root module, a compiled or jitted function or a CUDA graph is called and runs in no other one.

        Args:
            sign: module, compiled, jit or graph.
            thing: what is called; can be referred to weakly.
            grad: the call builds a graph for backward, as training does.
        """
        if self._capturing:
            return
        self.start()
        warmed_up = self._captured and sign == "graph" and self._was_warm_up()
        if sign != "graph":
            self._captured = False
        level = LEVELS[sign]
        for lower in range(1, level):
            self._hidden[lower] = LEAD
        if not warmed_up and (not self._allowed(sign) or self._is_hidden(level)):
            return
        known = self._called.get(id(thing))
        if known is None or known[0]() is not thing:
            self._called[id(thing)] = weakref.ref(thing), sign
            return
        if warmed_up:
            self._forget_warm_up()
        if self._waits(level, grad=grad):
            return
        if self._sign(sign) and len(self._called) > 1:
            higher = {
                key: one
                for key, one in self._called.items()
                if LEVELS[one[1]] > level and one[0]() is not None
            }
            self._called = {id(thing): known, **higher}

    def batch(self, batches: object, *, grad: bool = False) -> None:
        """A DataLoader has delivered a batch.

        Args:
            batches: the iterator that delivered it; can be referred to weakly.
            grad: graphs for backward are built.
        """
        if self._capturing:
            return
        self.start()
        if not self._allowed("loader") or not self._leads("loader", batches):
            return
        again, self._delivered, self._exhausted = self._delivered, True, False
        level = LEVELS["loader"]
        if again and not self._is_hidden(level) and not self._waits(level, grad=grad):
            self._sign("loader")

    def exhausted(self, batches: object) -> bool:
        """A DataLoader has no more batches. Returns whether the work on a last batch has ended with that."""
        leader = self._leaders.get("loader")
        if leader is None or leader() is not batches:
            return False
        self._exhausted = self._delivered
        return self._exhausted and (self.how == "loader" or not self._called)

    def capture(self, *, on: bool) -> None:
        """The capture of a CUDA graph begins or ends, in no root module; what is captured does not run."""
        self._capturing = on
        self._captured = not on

    def start(self) -> None:
        """The first step begins now, if none has."""
        if not self.began and self.mode != "off":
            self.began = True
            self._begin()

    @property
    def undecided(self) -> bool:
        """Whether a root module's forward could still tell something."""
        return self.mode in ("auto", "module") and LEVELS[self.how] <= LEVELS["module"]

    @property
    def minds_modules(self) -> bool:
        """Whether calls end steps that must not run in a root module."""
        return LEVELS[self.mode if self.mode in LEVELS else self.how] == LEVELS["graph"]

    @property
    def ends_with_calls(self) -> bool:
        """Whether the end of a call, of those that count, can be the end of the last step."""
        return bool(self._called) and self.how != "loader" and LEVELS[self.how] <= LEVELS["module"]

    def close_last(self) -> bool:
        """The program ends. Returns whether the open step has ended with the last call in it.

        Where calls are steps it ended with the last of them; where batches are, with the end of the loader.
        In ``auto`` a program that made only one call has no steps: nothing was repeated.
        """
        if self.mode == "auto" and not self.count:
            return False
        sign = self.how
        if sign == "none":
            kinds = [kind for _thing, kind in self._called.values()]
            sign = max(kinds, key=LEVELS.__getitem__, default="loader")
        ended = self._exhausted if sign == "loader" else bool(self._called)
        if not ended or not self._allowed(sign) or LEVELS[sign] > LEVELS["module"]:
            return False
        self.how = sign
        self.count += 1
        return True

    def _allowed(self, sign: str) -> bool:
        if self.mode == "auto":
            return LEVELS[sign] >= LEVELS[self.how] and self.kept_lower != sign
        return self.mode == sign

    def _leads(self, sign: str, thing: object) -> bool:
        """Whether this optimizer or loader is the one that ends steps."""
        reference = self._leaders.get(sign)
        leader = reference() if reference is not None else None
        if leader is not None and leader is not thing:
            self._others[sign] = self._others.get(sign, 0) + 1
            if self._others[sign] < LEAD:
                return False
        self._others[sign] = 0
        if leader is not thing:
            self._leaders[sign] = weakref.ref(thing)
        return True

    def _is_hidden(self, level: int) -> bool:
        """Whether something of a higher level was seen a short time ago."""
        left = self._hidden.get(level, 0)
        if self.mode != "auto" or not left or LEVELS[self.how] == level:
            return False
        self._hidden[level] = left - 1
        return True

    def _waits(self, level: int, *, grad: bool) -> bool:
        """Whether a step of an optimizer is expected instead."""
        if not grad or not self.optimizers or LEVELS[self.how] >= level or self.mode != "auto":
            return False
        self._waited[level] = self._waited.get(level, 0) + 1
        return self._waited[level] < PATIENCE

    def _was_warm_up(self) -> bool:
        """Whether the steps so far can have been the warm-up of the graph that was captured."""
        return self.mode == "auto" and self.how not in ("graph", "explicit") and self.count <= WARM_UP

    def _forget_warm_up(self) -> None:
        if self.count and self._restart():
            self.count = 0
        elif self.count:
            self.late_capture = self.how
        self.how = "none"
        self._captured = False
        self._hidden.clear()

    def _sign(self, sign: StepSign) -> bool:
        """A step ends. Returns whether it does: not where a lower sign is kept."""
        self.start()
        if self.how == "none" or not self.count:
            self.how = sign
        elif LEVELS[self.how] != LEVELS[sign]:
            if self.count == 1 and self.how == "optimizer":
                self.how = sign
                return True
            if not self._restart():
                self.kept_lower = sign
                return False
            self.count = 0
            self.how = sign
        self.count += 1
        self._ended()
        return True
