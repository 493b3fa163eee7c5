"""CUDA graphs of root modules, with a stand-in for the capture: which calls are replayed, which are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from profrun.contract.changes import parse
from profrun.in_job.changes.graphs import CudaGraphs
from tests.in_job.changes.conftest import Programs


class Tensor:
    """What is looked at of a tensor on the GPU."""

    dtype = "fp32"
    device = "cuda:0"

    def __init__(self, *shape: int, is_cuda: bool = True) -> None:
        self.shape = shape
        self.is_cuda = is_cuda
        self.requires_grad = False
        self.content = 0

    def detach(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        copy = Tensor(*self.shape)
        copy.content = self.content
        return copy

    def requires_grad_(self, value: bool) -> Tensor:
        self.requires_grad = value
        return self

    def copy_(self, other: Tensor) -> None:
        self.content = other.content


class Net:
    """A module with a counter of batches, as batch norm has."""

    def __init__(self) -> None:
        self.batches = Tensor(1)

    def forward(self, x: Tensor, **_named: Any) -> str:
        self.batches.content += 1
        return f"own {x.shape}"

    def parameters(self) -> list[Tensor]:
        return [Tensor(2)]

    def buffers(self) -> list[Tensor]:
        return [self.batches]


class NoGrad:
    """torch.no_grad()."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_error: object) -> None: ...


def graphed(module: Any, samples: tuple[Tensor, ...]) -> None:
    """torch.cuda.make_graphed_callables: warms up, then puts what replays in the place of the forward."""
    for _ in range(4):
        module.forward(*samples)
    module.forward = lambda x: f"replayed {x.shape}"


def change(capture: Any = graphed, **state: Any) -> CudaGraphs:
    modes = SimpleNamespace(grad=True, autocast=False, random=[1]) if not state else SimpleNamespace(**state)
    cuda = SimpleNamespace(
        make_graphed_callables=capture,
        get_rng_state=lambda: list(modes.random),
        set_rng_state=lambda value: setattr(modes, "random", value),
    )
    torch = SimpleNamespace(
        Tensor=Tensor,
        cuda=cuda,
        no_grad=NoGrad,
        is_grad_enabled=lambda: modes.grad,
        is_autocast_enabled=lambda _kind: modes.autocast,
        modes=modes,
    )
    process: Any = SimpleNamespace(capturing=lambda: False, warn=lambda _finding: None)
    made = CudaGraphs(parse("cuda-graphs"), process)
    made.attach(torch)
    return made


def test_calls_like_the_first_are_replayed_and_all_others_run_the_modules_own_code() -> None:
    made, net = change(), Net()
    made.root_called(net, (Tensor(4),), {})
    assert net.batches.content == 0, "the warm-up has left the buffers as they were"
    calls: Any = net.forward
    assert (calls(Tensor(4)), calls(Tensor(5)), calls(Tensor(4), more=1)) == (
        "replayed (4,)",
        "own (5,)",
        "own (4,)",
    )
    made._torch.modes.grad = False
    assert calls(Tensor(4)) == "own (4,)", "it was captured with gradients"
    finding = made.finding()
    assert finding is not None
    assert finding.what == "cuda-graphs: 1 root module (Net) replayed as CUDA graphs"


def test_a_capture_that_fails_leaves_the_module_as_it_was() -> None:
    def fails(module: Any, samples: Any) -> None:
        module.forward = None
        raise RuntimeError("operation not permitted when stream is capturing")

    made, net = change(fails), Net()
    made.root_called(net, (Tensor(4),), {})
    assert "forward" not in vars(net)
    finding = made.finding()
    assert finding is not None
    assert finding.why == "Net: torch cannot capture it: operation not permitted when stream is capturing"


STATIC = """
from profrun.in_job.changes.graphs import Replay
net = torch.nn.Linear(4, 1, bias=False)
memory = torch.zeros_like(net.weight)

class Graphed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x)
        return x @ weight.detach().T

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        memory.copy_(grad.T @ x)
        return None, memory.detach()

def graphed(x):
    return Graphed.apply(x, net.weight)

def gradients(call, steps, to_none=True):
    net.weight.grad = None
    found = []
    for step in steps:
        net.zero_grad(set_to_none=to_none)
        for size in step:
            call(torch.full((1, 4), float(size))).sum().backward()
        found.append(net.weight.grad[0, 0].item())
    return found

def replay():
    like = (torch.ones(1, 4),)
    out["copied"] = 0

    def copied():
        out["copied"] += 1

    return Replay(net.forward, graphed, torch, like, [net.weight], copied)
"""
"""As torch.cuda.make_graphed_callables: a backward returns memory that the next one overwrites."""


@pytest.mark.parametrize(
    ("steps", "to_none", "right", "without", "copied"),
    [
        ([[1], [10]], True, [1, 10], [1, 10], 0),
        ([[1, 10, 100], [1, 10]], True, [111, 11], [200, 20], 1),
        ([[1], [10]], False, [1, 10], [1, 20], 1),
    ],
)
def test_gradients_that_are_added_up_are_those_of_the_modules_own_code(
    programs: Programs,
    steps: list[list[int]],
    to_none: bool,
    right: list[int],
    without: list[int],
    copied: int,
) -> None:
    code = f"""
out["own"] = gradients(net, {steps}, {to_none})
out["without"] = gradients(graphed, {steps}, {to_none})
out["replayed"] = gradients(replay(), {steps}, {to_none})
"""
    answer = programs.run(before=STATIC, code=code)
    assert answer.error is None
    assert answer.out == {"own": right, "without": without, "replayed": right, "copied": copied}


def test_it_is_said_that_gradients_are_copied() -> None:
    made, net = change(), Net()
    made.root_called(net, (Tensor(4),), {})
    made._copied()
    finding = made.finding()
    assert finding is not None
    assert finding.what == (
        "cuda-graphs: 1 root module (Net) replayed as CUDA graphs, "
        "whose gradients are copied so that they add up"
    )


class DistributedDataParallel(Net):
    """A module with another one inside."""

    module = Net()


@pytest.mark.parametrize(
    ("net", "args", "kwargs", "why"),
    [
        (Net(), (Tensor(1),), {"mask": 1}, "it is called with arguments by name (mask), which cannot be"),
        (Net(), (Tensor(1), 3), {}, "its arguments are not all tensors on the GPU"),
        (Net(), (Tensor(1, is_cuda=False),), {}, "its arguments are not all tensors on the GPU"),
        (Net(), (), {}, "its arguments are not all tensors on the GPU"),
        (DistributedDataParallel(), (Tensor(1),), {}, "it is wrapped in DistributedDataParallel"),
    ],
)
def test_what_cannot_be_captured(net: Any, args: Any, kwargs: dict[str, Any], why: str) -> None:
    made = change()
    made.root_called(net, args, kwargs)
    finding = made.finding()
    assert finding is not None
    assert finding.code == "change-not-applied"
    assert finding.why.startswith(f"{type(net).__name__}: {why}")


def test_nothing_is_captured_under_autocast() -> None:
    made, net = change(grad=True, autocast=True, random=[1]), Net()
    made.root_called(net, (Tensor(1),), {})
    finding = made.finding()
    assert finding is not None
    assert finding.why == "Net: it runs under autocast, whose cache cannot be captured"
