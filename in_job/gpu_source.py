"""What the sampler reads of one GPU: calls of a vendor's library, tried once, then made for every sample."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from ..contract.visible_devices import VISIBLE_DEVICES, visible_devices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..contract.sampling import Quantity, SampledSource

Value = Optional[Union[int, float]]
"""A value, None where it could not be read."""


class LibraryError(Exception):
    """The vendor's library cannot be loaded or started; the message says why."""


class Library:
    """A vendor's library: functions that return 0 where all went well, and write into their last argument.

    Args:
        names: files, the first that can be loaded is taken.

    Raises:
        LibraryError: none of them can be loaded.
    """

    def __init__(self, names: Sequence[str]) -> None:
        why = "it is not there"
        for name in names:
            try:
                self._library = ctypes.CDLL(name)
                return
            except OSError as error:
                why = str(error)
        raise LibraryError(why)

    def function(self, name: str) -> Any:
        """A function, None where the library does not have it."""
        return getattr(self._library, name, None)

    def call(self, name: str, *arguments: Any) -> int | None:
        """The function's return code, None where the library does not have it."""
        function = self.function(name)
        return None if function is None else int(function(*arguments))

    def number(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint) -> int | None:
        """The number of the type ``kind`` that a function writes; None where it fails."""
        found = kind()
        return int(found.value) if self.call(name, *arguments, ctypes.byref(found)) == 0 else None

    def text(self, name: str, *arguments: Any, size: Any = ctypes.c_uint) -> str | None:
        """The text that a function writes into a buffer, whose length of the type ``size`` it is told."""
        buffer = ctypes.create_string_buffer(128)
        if self.call(name, *arguments, buffer, size(128)) != 0:
            return None
        return buffer.value.decode("utf-8", "replace")


def divided(value: int | None, by: int) -> float | None:
    """A number in a larger unit: mW as W."""
    return None if value is None else value / by


@dataclass(frozen=True)
class Call:
    """One call of a library, and what it gives.

    Attributes:
        quantities: what ``read`` gives, in its order.
        read: returns one value for each of the quantities. It never raises.
    """

    quantities: tuple[Quantity, ...]
    read: Callable[[], Sequence[Value]]


class GpuReader:
    """Reads one GPU.

    A quantity that several calls give is taken from the first of them that works. A quantity that no call
    gives in the first try is left out.

    Args:
        source: the GPU; its quantities are filled in here.
        calls: what can be called. The first is the one whose time counts: the energy's, where there is one.
    """

    def __init__(self, source: SampledSource, calls: Sequence[Call]) -> None:
        self._plan: list[tuple[Callable[[], Sequence[Value]], tuple[int, ...]]] = []
        quantities: list[Quantity] = []
        for call in calls:
            wanted = [quantity not in quantities for quantity in call.quantities]
            if not any(wanted):
                continue
            values = call.read()
            kept = tuple(i for i, value in enumerate(values) if wanted[i] and value is not None)
            if kept:
                self._plan.append((call.read, kept))
                quantities += [call.quantities[i] for i in kept]
        self.source = replace(source, quantities=tuple(quantities))

    def read(self) -> tuple[int, list[Value]]:
        """The time of the reading (unix time, ns: the middle of the first call), and the values."""
        row: list[Value] = []
        when = before = time.time_ns()
        for number, (read, kept) in enumerate(self._plan):
            values = read()
            if not number:
                when = (before + time.time_ns()) // 2
            row += [values[i] for i in kept]
        return when, row


def seen_gpus(env: Mapping[str, str], vendor: str, uuids: Sequence[str]) -> list[int]:
    """Which of the host's GPUs a program sees by its environment: their indices, sorted.

    As CUDA reads its variable: an empty list and -1 are no GPU, and what follows an entry that names no GPU
    does not count. Where no variable lists any, or several do, all GPUs are seen.

    Args:
        uuids: of the host's GPUs, by index, as the library gives them.
    """
    given = [env[name].strip() for name in VISIBLE_DEVICES.get(vendor, ()) if name in env]
    if given and all(value in ("", "-1", "NoDevFiles") for value in given):
        return []
    chosen = visible_devices(env, vendor)
    if not chosen:
        return list(range(len(uuids)))
    found: list[int] = []
    for one in chosen:
        index = _index(one, uuids)
        if index is None:
            break
        found.append(index)
    return sorted(set(found))


def _index(one: str, uuids: Sequence[str]) -> int | None:
    """The index of the GPU that an entry of the list names: a number, or the begin of one uuid."""
    if one.isascii() and one.isdigit():
        return int(one) if int(one) < len(uuids) else None
    fits = [index for index, uuid in enumerate(uuids) if one and uuid.lower().startswith(one.lower())]
    return fits[0] if len(fits) == 1 else None
