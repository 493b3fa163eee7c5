"""Makes the changes of a job in this process: ``Changes``. Loaded only where a variant has changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ...contract import change_findings
from ...contract.changes import parse
from .applied import Applied
from .backends import Attention, CompileDynamic, CudnnBenchmark
from .distributed import BucketSize
from .graphs import CudaGraphs
from .loaders import LoaderPrefetch, LoaderWorkers
from .modules import Autocast, ChannelsLast, Compile
from .optimizers import ForeachOptimizer, FusedOptimizer, SetToNone
from .pinned import PinnedMemory
from .precision import Tf32
from .waits import NoEmptyCache, NoSynchronize

if TYPE_CHECKING:
    from ..hook_process import HookProcess
    from ..torch_types import Module, Torch, Values

MAKERS: dict[str, type[Applied]] = {
    "tf32": Tf32,
    "compile": Compile,
    "channels-last": ChannelsLast,
    "autocast": Autocast,
    "cuda-graphs": CudaGraphs,
    "compile-dynamic": CompileDynamic,
    "loader-workers": LoaderWorkers,
    "loader-prefetch": LoaderPrefetch,
    "pinned-memory": PinnedMemory,
    "fused-optimizer": FusedOptimizer,
    "foreach-optimizer": ForeachOptimizer,
    "set-to-none": SetToNone,
    "attention": Attention,
    "cudnn-benchmark": CudnnBenchmark,
    "bucket-size": BucketSize,
    "no-empty-cache": NoEmptyCache,
    "no-synchronize": NoSynchronize,
}
"""Name of a change in which the hook has a part -> what makes it. Several changes of one root module are made
in this order: what is compiled has no code of profrun in it, and a CUDA graph has what autocast does."""


class Changes:
    """All changes of one process. No method raises: an error becomes a finding, and the program goes on.

    Args:
        process: this process; its orders name the changes.
    """

    def __init__(self, process: HookProcess) -> None:
        self._process = process
        self._made: list[Applied] = []
        for text in process.config.changes or ():
            try:
                change = parse(text)
                if change.kind.hook:
                    self._made.append(MAKERS[change.kind.name](change, process))
            except Exception as error:
                process.warn(change_findings.failed(text, f"{type(error).__name__}: {error}"))
        order = list(MAKERS)
        self._made.sort(key=lambda one: order.index(one.change.kind.name))

    def attach(self, torch: Torch) -> None:
        """torch has been imported."""
        self._each(lambda one: one.attach(torch))

    def compiler_imported(self) -> None:
        """``torch._dynamo`` has been imported."""
        self._each(lambda one: one.compiler_imported())

    def root_called(self, module: Module, args: tuple[Values, ...], kwargs: dict[str, Values]) -> None:
        """A root module is about to be called for the first time, with these arguments."""
        if not self._process.ignored():
            self._each(lambda one: one.root_called(module, args, kwargs))

    def tell(self) -> None:
        """The process ends: say what each change was applied to, or why it changed nothing."""
        self._each(self._tell)

    def _tell(self, one: Applied) -> None:
        one.ended()
        finding = one.finding()
        if finding is not None:
            self._process.warn(finding)

    def _each(self, call: Callable[[Applied], None]) -> None:
        for one in self._made:
            try:
                call(one)
            except Exception as error:
                one.failed(error)
