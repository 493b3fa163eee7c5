"""Copies from pinned memory, with a stand-in for tensors on the GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from profrun.contract.changes import parse
from profrun.in_job.changes.pinned import PinnedMemory
from tests.in_job.changes.conftest import Programs

Made = tuple[PinnedMemory, Any]


def made() -> Made:
    """The change and a stand-in torch, whose tensors note how they were copied."""

    class Dtype:
        pass

    class Device:
        def __init__(self, name: Any) -> None:
            self.type = "cuda" if isinstance(name, int) else str(name).partition(":")[0]

    class Tensor:
        layout = "strided"

        def __init__(self, kind: str = "cpu", size: int = 1 << 20, *, pinned: bool = False) -> None:
            self.device, self.size, self.pinned, self.requires_grad = Device(kind), size, pinned, False
            self.copies: list[Any] = []

        def numel(self) -> int:
            return self.size

        def element_size(self) -> int:
            return 1

        def is_pinned(self) -> bool:
            return self.pinned

        def pin_memory(self) -> Tensor:
            copy = type(self)(size=self.size, pinned=True)
            copy.copies = self.copies
            return copy

        def to(self, *args: Any, **kwargs: Any) -> None:
            self.copies.append((self.pinned, args[1:], kwargs))

        def cuda(self, *args: Any, **kwargs: Any) -> None:
            self.copies.append((self.pinned, args, kwargs))

        def copy_(self, src: Tensor, non_blocking: bool = False) -> None:
            self.copies.append((src.pinned, non_blocking))

    class Parameter(Tensor):
        pass

    class DataLoader:
        def __init__(self) -> None: ...

    torch = SimpleNamespace(
        Tensor=Tensor,
        device=Device,
        dtype=Dtype,
        strided="strided",
        nn=SimpleNamespace(Parameter=Parameter),
        cuda=SimpleNamespace(is_available=lambda: True),
        utils=SimpleNamespace(data=SimpleNamespace(DataLoader=DataLoader)),
    )
    process: Any = SimpleNamespace(capturing=lambda: False, warn=lambda finding: pytest.fail(str(finding)))
    change = PinnedMemory(parse("pinned-memory"), process)
    change.attach(torch)
    return change, torch


NOT_WAITING = {"non_blocking": True}


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("cuda",), {}, ((), NOT_WAITING)),
        ((1,), {}, ((), NOT_WAITING)),
        (("cuda:1", None, False), {"copy": True}, ((None, True), {"copy": True})),
    ],
)
def test_to_copies_from_pinned_memory_and_does_not_wait(
    args: tuple[Any, ...], kwargs: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    change, torch = made()
    tensor = torch.Tensor()
    tensor.to(*args, **kwargs)
    assert tensor.copies == [(True, *expected)]
    finding = change.finding()
    assert finding is not None
    assert (
        finding.what == "pinned-memory: 0 DataLoaders pinned batches, 1 tensor went to the GPU without a wait"
    )


def test_cuda_copy_and_another_tensor_as_the_target() -> None:
    change, torch = made()
    tensor, target = torch.Tensor(), torch.Tensor("cuda")
    tensor.cuda()
    tensor.to(target)
    tensor.to(other=target)
    assert tensor.copies == [(True, (), NOT_WAITING)] * 2 + [(True, (), {**NOT_WAITING, "other": target})]
    target.copy_(tensor)
    assert target.copies == [(True, True)]
    assert change.count == 4


def test_what_is_left_alone() -> None:
    change, torch = made()
    on_gpu, tensor, parameter = torch.Tensor("cuda"), torch.Tensor(), torch.nn.Parameter()
    on_gpu.to("cpu")
    on_gpu.copy_(torch.Tensor("cuda"))
    tensor.to("cpu")
    tensor.to(torch.dtype())
    tensor.copy_(torch.Tensor())
    parameter.to("cuda")
    assert on_gpu.copies == [(False, (), {}), (False, False)]
    assert tensor.copies == [(False, (), {}), (False, (), {}), (False, False)]
    assert parameter.copies == [(False, (), {})]
    assert change.count == 0


def test_small_and_pinned_tensors_are_not_copied_first() -> None:
    _change, torch = made()
    small, edge = torch.Tensor(size=(64 << 10) - 1), torch.Tensor(size=64 << 10)
    for tensor in (small, edge):
        tensor.to("cuda")
    assert (small.copies[0][0], edge.copies[0][0]) == (False, True)
    pinned = torch.Tensor(pinned=True)
    pinned.pin_memory = lambda: pytest.fail("it is pinned")
    pinned.to("cuda")
    assert pinned.copies == [(True, (), NOT_WAITING)]


def test_real_dataloaders_pin_and_real_tensors_move_as_before(programs: Programs) -> None:
    code = f"""
loader = torch.utils.data.DataLoader(torch.arange(3.0), 2)
out["pins"] = loader.pin_memory
x = torch.arange(3).to(torch.float64).to("cpu", torch.float32).to(torch.ones(1))
y = torch.zeros(3).copy_(x)
z = torch.compile(lambda t: t.to(torch.float64) + 1, backend="eager")(x) if {False} else x.double() + 1
out["values"], out["type"] = y.tolist(), str(z.dtype)
"""
    answer = programs.run("pinned-memory", code=code, before="torch.cuda.is_available = lambda: True")
    assert answer.error is None
    assert answer.out == {"pins": True, "values": [0.0, 1.0, 2.0], "type": "torch.float64"}
    assert answer.only[1] == (
        "pinned-memory: 1 DataLoader pinned batches, 0 tensors went to the GPU without a wait"
    )


@pytest.mark.thorough
def test_compiled_code_is_not_broken_by_it(programs: Programs) -> None:
    code = """
torch.cuda.is_available = real
def f(t):
    return torch.zeros(2, dtype=torch.float64).copy_(t.to(torch.float64) + 1)
out["found"] = torch.compile(f, backend="eager")(torch.ones(2)).tolist()
out["breaks"] = len(torch._dynamo.utils.counters["graph_break"])
"""
    before = "real = torch.cuda.is_available; torch.cuda.is_available = lambda: True"
    answer = programs.run("pinned-memory", code=code, before=before)
    assert answer.error is None
    assert answer.out == {"found": [2.0, 2.0], "breaks": 0}
