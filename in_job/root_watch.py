"""What calls of root modules tell: where steps end, which modules get ranges, the shapes of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .root_module_hook import RootModuleHook

if TYPE_CHECKING:
    from .hook_process import HookProcess
    from .ranges import Ranges
    from .results import ResultWatch
    from .root_module_hook import FirstCall
    from .step_follower import StepFollower
    from .torch_types import Module, Torch, Values

_SETTLED = 3  # steps after which no new root module is looked for


class RootWatch:
    """Watches root modules until they can tell nothing new.

    Args:
        first: called before the first call of each root module (``RootModuleHook``).
        results: is told what they return; None where nobody asks.

    Attributes:
        hook: finds the root modules.
    """

    def __init__(
        self,
        process: HookProcess,
        steps: StepFollower,
        ranges: Ranges,
        torch: Torch,
        first: FirstCall | None = None,
        results: ResultWatch | None = None,
    ) -> None:
        self.process = process
        self.steps = steps
        self.ranges = ranges
        self.torch = torch
        self.results = results
        self.hook = RootModuleHook(torch, self._before, self._after, first)
        self._known = self._quiet = 0  # roots known, and calls since the last new one

    def settle(self) -> None:
        """After a step: stop looking for root modules when they can tell nothing new.

        Where modules are steps, not in a step that is warmed up or recorded: it would be 0.1 ms longer.
        """
        finder = self.steps.finder
        if self._wants_outputs():
            return
        if not finder.undecided and (len(self.hook) or self.steps.number >= _SETTLED):
            self.hook.settle(keep=finder.minds_modules)
        elif finder.how == "module" and self.steps.number >= _SETTLED and self._is_idle():
            self.hook.settle(keep=True)

    def _is_idle(self) -> bool:
        return self.process.schedule.part(self.steps.number) in ("wait", "outside")

    def after_fork(self) -> None:
        """A forked child starts from nothing."""
        self.hook.forget()

    def _before(self, module: Module, args: tuple[Values, ...]) -> None:
        if self.process.ignored():
            return
        try:
            self._note_shapes(args)
            grad = self.torch.is_grad_enabled() and module.training
            self.steps.finder.called("module", module, grad=grad)
            self.ranges.root_called(module, self.hook.entered)
            if self.process.config.ranges.steps not in ("auto", "module", "optimizer"):
                self._settle_without_steps()
        except Exception as error:
            self.process.fail(error)

    def _wants_outputs(self) -> bool:
        return self.results is not None and self.results.wants_outputs

    def _after(self, _module: Module, output: Values) -> None:
        if self.results is not None:
            self.results.returned(output)
        if not self.steps.finder.ends_with_calls or self.process.ignored():
            return
        try:
            self.steps.note_end()
        except Exception as error:
            self.process.fail(error)

    def _settle_without_steps(self) -> None:
        """Where forwards are no steps, look for roots only until no new one has come for a while."""
        self._quiet = self._quiet + 1 if len(self.hook) == self._known else 0
        self._known = len(self.hook)
        if (self._quiet >= _SETTLED or self._known >= _SETTLED) and not self._wants_outputs():
            self.hook.settle(keep=self.steps.finder.minds_modules)

    def _note_shapes(self, args: tuple[Values, ...]) -> None:
        """Shapes of the first root's inputs: what is known of the work per step."""
        if "shapes" not in self.process.work:
            tensors = [value for value in args if isinstance(value, self.torch.Tensor)]
            shapes = "; ".join(f"{list(value.shape)} {value.dtype}" for value in tensors)
            self.process.work["shapes"] = shapes
