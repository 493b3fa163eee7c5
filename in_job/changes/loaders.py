"""DataLoaders get worker processes (``loader-workers``), and workers load ahead (``loader-prefetch``)."""

from __future__ import annotations

import functools
import inspect
import multiprocessing
import weakref
from typing import TYPE_CHECKING, Any

from ...contract.units import counted
from .applied import Applied
from .constructors import construct, given

if TYPE_CHECKING:
    from ..torch_types import Torch, Values


class LoaderWorkers(Applied):
    """Each DataLoader that is made gets at least so many worker processes, which stay from epoch to epoch."""

    nothing = "the program made no DataLoader"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        self._torch = torch
        self._made_persistent: weakref.WeakSet[Any] = weakref.WeakSet()
        owner = torch.utils.data.DataLoader
        original = owner.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            values = self._values(given(self, signature, (loader, *args), kwargs))
            if not values:
                original(loader, *args, **kwargs)
            elif construct(self, original, signature, (loader, *args), kwargs, values):
                self.count += 1
                if "persistent_workers" in values:
                    self._made_persistent.add(loader)

        owner.__init__ = __init__
        self._keep_random_numbers(owner)

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"{counted(self.count, 'DataLoader')} got {self.change.value} worker processes"

    def _values(self, arguments: dict[str, Any] | None) -> dict[str, Any]:
        """The values that a new DataLoader gets instead of its own; empty: it is left alone."""
        if arguments is None:
            return {}
        try:
            why = self._refusal(arguments.get("dataset"))
            if why is not None:
                self.skip(why)
                return {}
            wanted: dict[str, Any] = {
                "num_workers": max(arguments.get("num_workers", 0), int(self.change.value)),
                "persistent_workers": True,
            }
            if self._torch.cuda.is_available():
                wanted["pin_memory"] = True
            values = {name: value for name, value in wanted.items() if arguments.get(name) != value}
        except Exception as error:
            self.failed(error)
            return {}
        if not values:
            self.skip(f"a DataLoader has {wanted['num_workers']} persistent workers already")
        return values

    def _refusal(self, dataset: Any) -> str | None:
        """Why a DataLoader of this data set is left alone; None: it is not."""
        if isinstance(dataset, self._torch.utils.data.IterableDataset):
            return "the DataLoader reads an IterableDataset, of which each worker would read all data"
        if on_gpu(dataset):
            return "the data set is on the GPU already"
        if multiprocessing.current_process().daemon:
            return "the DataLoader is made in a daemonic process, which may not start workers"
        return None

    def _keep_random_numbers(self, owner: Any) -> None:
        """Let the main process draw the same random numbers as without workers.

        Each pass over a DataLoader draws one number, the seed of its workers; a pass with persistent workers
        does so only the first time. Without this, data would be shuffled otherwise from the second pass on.
        """
        original = owner.__iter__

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:
            try:
                if loader in self._made_persistent and getattr(loader, "_iterator", None) is not None:
                    torch = self._torch
                    torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
            except Exception as error:
                self.failed(error)
            return original(loader)

        owner.__iter__ = __iter__


class LoaderPrefetch(Applied):
    """Each worker process of a DataLoader loads at least so many batches ahead."""

    nothing = "the program made no DataLoader"

    def attach(self, torch: Torch) -> None:
        """See ``Applied.attach``."""
        owner = torch.utils.data.DataLoader
        original = owner.__init__

        @functools.wraps(original)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            try:
                self._load_ahead(loader)
            except Exception as error:
                self.failed(error)

        owner.__init__ = __init__

    def told(self) -> str:
        """See ``Applied.told``."""
        return f"workers of {counted(self.count, 'DataLoader')} load {self.change.value} batches ahead"

    def _load_ahead(self, loader: Any) -> None:
        """Change a loader that was just made: its workers do not run yet, and read the number later."""
        wanted = int(self.change.value)
        if not loader.num_workers:
            self.skip("the DataLoader has no worker process, and loads each batch when it is asked for it")
        elif loader.prefetch_factor >= wanted:
            self.skip(f"each worker of a DataLoader loads {loader.prefetch_factor} batches ahead already")
        else:
            loader.prefetch_factor = wanted
            self.count += 1


def on_gpu(dataset: Values) -> bool:
    """Whether a TensorDataset, or a part of one, is on a GPU: it can be neither sent nor pinned.

    Args:
        dataset: any data set.
    """
    for _ in range(8):  # Subset of a Subset
        tensors = getattr(dataset, "tensors", None)
        if isinstance(tensors, tuple):
            return any(bool(getattr(tensor, "is_cuda", False)) for tensor in tensors)
        dataset = getattr(dataset, "dataset", None)
        if dataset is None:
            break
    return False
