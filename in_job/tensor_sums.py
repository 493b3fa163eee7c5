"""Sums of the absolute values of tensors, which are computed where the tensors are and read much later.

Nothing here waits for a GPU until ``SizeSum.read`` is called. A sum needs no further memory than a few
numbers, and draws no random numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .torch_types import Tensor, Torch, Values

_DEEPEST = 8  # nesting of what a module returns: its values may hold themselves
_WIDE = ("cpu", "cuda")  # devices that can add 64 bit numbers


@dataclasses.dataclass(frozen=True)
class SizeSum:
    """The sum of the absolute values of the numbers of some tensors.

    Attributes:
        parts: one number for each device, as a tensor.
        count: how many numbers were added.
    """

    parts: tuple[Tensor, ...]
    count: int

    def read(self) -> float:
        """The sum; waits for the GPU."""
        return sum(float(part) for part in self.parts)

    def read_mean(self) -> float:
        """The mean of the absolute values; waits for the GPU."""
        return self.read() / self.count


def plain(torch: Torch, value: Tensor) -> Tensor | None:
    """A tensor whose numbers can be read later: floating point, dense, and on a device.

    Of a distributed tensor it is the part of this rank, so that no rank waits for another.

    Returns:
        It, without what autograd knows of it; None where it is no such tensor, or stands for one inside of a
        transformation of ``torch.func``, outside of which it has no numbers.
    """
    local = getattr(value, "to_local", None)
    found = (value if local is None else local()).detach()
    if not found.is_floating_point() or found.layout != torch.strided or found.device.type == "meta":
        return None
    functions = getattr(torch._C, "_functorch", None)
    wrapped = getattr(functions, "is_functorch_wrapped_tensor", None)
    return None if wrapped is not None and wrapped(found) else found


def size_sum(torch: Torch, values: Iterable[Tensor]) -> list[SizeSum]:
    """The sum of the absolute values of all floating-point numbers of tensors.

    A GPU adds numbers of 16 bits as numbers of 32 bits: their sum is soon too large for 16 bits, or wrong in
    the third digit. A CPU adds in 64 bits: it adds one number after the other, and in 32 bits a sum of 50
    million numbers was 5 % too small. A GPU adds in a tree.

    Returns:
        It alone; nothing where there is no such number.
    """
    by_device: dict[object, list[Tensor]] = {}
    count = 0
    with torch.no_grad():
        for value in values:
            tensor = plain(torch, value)
            if tensor is None or not tensor.numel():
                continue
            wide = tensor.dtype == torch.float64 or tensor.device.type == "cpu"
            dtype = torch.float64 if wide else torch.float32
            one = torch.linalg.vector_norm(tensor, 1, dtype=dtype)
            by_device.setdefault(tensor.device, []).append(one)
            count += tensor.numel()
        parts = tuple(_added(torch, parts) for parts in by_device.values())
    return [SizeSum(parts, count)] if parts else []


def _added(torch: Torch, parts: list[Tensor]) -> Tensor:
    together = torch.stack(parts)
    return (together.to(torch.float64) if together.device.type in _WIDE else together).sum()


def tensors_in(torch: Torch, values: Values, deepest: int = _DEEPEST) -> Iterator[Tensor]:
    """The tensors of what a module returns, in order.

    Tuples, lists, dictionaries (so the outputs of transformers) and dataclasses are looked into.
    """
    if isinstance(values, torch.Tensor):
        yield values
        return
    if deepest == 0:
        return
    if isinstance(values, Mapping):
        inner = list(values.values())
    elif isinstance(values, (tuple, list)):
        inner = list(values)
    elif dataclasses.is_dataclass(values) and not isinstance(values, type):
        inner = [getattr(values, field.name, None) for field in dataclasses.fields(values)]
    else:
        return
    for value in inner:
        yield from tensors_in(torch, value, deepest - 1)
