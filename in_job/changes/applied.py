"""One change in one process: what it is told, what it was applied to, and what is said of it at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contract import change_findings

if TYPE_CHECKING:
    from ...contract.changes import Change
    from ...contract.finding import Finding
    from ..hook_process import HookProcess
    from ..torch_types import Module, Torch, Values

_REASONS = 3  # of different reasons why something was left alone, how many are told
_LONGEST = 300  # characters of a reason


class Applied:
    """A change of the user's program; each kind of change is a subclass.

    A subclass counts in ``count`` what it has changed, and calls ``skip`` for what it has left alone. Its
    methods may raise: ``Changes`` turns an error into a finding, and the program goes on.

    Attributes:
        nothing: why the change changed nothing, where no better reason is known.
        change: the change with its value.
        process: this process.
        count: how many things were changed: DataLoaders, optimizers, calls.
    """

    nothing = ""

    def __init__(self, change: Change, process: HookProcess) -> None:
        self.change = change
        self.process = process
        self.count = 0
        self._reasons: dict[str, None] = {}
        self._has_failed = False

    def attach(self, torch: Torch) -> None:
        """torch has been imported."""

    def compiler_imported(self) -> None:
        """torch.compile's front end, ``torch._dynamo``, has been imported."""

    def root_called(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> None:
        """A root module is about to be called for the first time.

        Args:
            module: the root module.
            args, kwargs: the arguments of this call.
        """

    def ended(self) -> None:
        """The process ends: the last moment to count, or to call ``skip``."""

    def told(self) -> str:
        """What was changed, with its number; asked only where ``count`` is not 0."""
        raise NotImplementedError

    def skip(self, why: str) -> None:
        """Something was left alone.

        Args:
            why: a sentence without a full stop; it is told if nothing was changed at all.
        """
        if len(self._reasons) < _REASONS:
            self._reasons[" ".join(why.split())[:_LONGEST]] = None

    def failed(self, error: BaseException) -> None:
        """An error of the change itself, told once."""
        if not self._has_failed:
            self._has_failed = True
            why = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
            self.process.warn(change_findings.failed(self.change.text, why))

    def finding(self) -> Finding | None:
        """What is to be said of the change; None where its error says more."""
        if self.count:
            return change_findings.applied(self.change, self.told())
        if self._has_failed:
            return None
        return change_findings.not_applied(self.change, "; ".join(self._reasons) or self.nothing)
