"""What a program computes is kept: real programs with CPU torch in real trials, and stand-ins for the rest.

Importing torch costs seconds: most programs are forked children of one process, each with a rank of its own.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profrun.contract.results import Results
from profrun.in_job import results
from profrun.in_job.results import ResultWatch
from tests.in_job.kit import Done, Trial

PROGRAMS = """
import dataclasses, os, random, sys, numpy, torch, profrun

def draw():                       # random numbers of Python, numpy and torch
    for _ in range(9):
        loss = torch.randn(1, requires_grad=True) * random.random() * numpy.random.rand()
        loss.backward()

def adversarial():                # two losses a step; one of the models has a checkpoint in its forward
    from torch.utils.checkpoint import checkpoint
    make, judge = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    first, second = (torch.optim.Adam(net.parameters(), lr=0.01) for net in (make, judge))
    one = torch.nn.Linear(4, 1)
    for _ in range(4):
        noise = torch.randn(1, 4)
        loss = judge(make(noise).detach()).square().mean()
        loss.backward(); second.step(); second.zero_grad()
        print(repr(loss.item()))
        out = make(noise)
        out.backward(torch.ones_like(out), retain_graph=True)               # of four numbers: no loss
        loss = checkpoint(one, out, use_reentrant=True).square().sum()      # calls backward on one number
        torch.autograd.backward([loss])
        loss.data.zero_()                                                   # a copy was remembered
        first.step(); first.zero_grad()
    print(not hasattr(torch.autograd.backward, "__wrapped__"))

def by_hand():
    weights = [torch.full((3,), 2.0, requires_grad=True), torch.ones(2, dtype=torch.bfloat16)]
    optimizer = torch.optim.SGD(weights, lr=0.5)
    for _ in range(9):
        weights[0].grad = torch.ones(3)
        optimizer.step()

@dataclasses.dataclass
class Output:
    logits: object
    more: dict

class Net(torch.nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return Output(y[:1], {"ids": torch.ones(5, dtype=torch.int64), "rest": (y[1:], None, "text")})

def infer(step=lambda: None):
    net = Net(2, 1)
    net.weight.data.fill_(1.0), net.bias.data.fill_(0.0)
    with torch.no_grad():
        for number in range(9):
            net(torch.tensor([[1.0, 1.0], [number, number], [-3.0, -3.0]]))
            step()

def explicit():
    infer(profrun.step)

def random_words():
    for _ in range(9):
        torch.randn(3)

def compiled():
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    @torch.compile(backend="eager", fullgraph=True)
    def loss_of(x):
        return net(x).square().sum()
    for _ in range(8):
        loss = loss_of(torch.ones(2, 4))
        loss.backward(); optimizer.step(); optimizer.zero_grad()
        print(repr(loss.item()), len(torch._dynamo.utils.counters["graph_break"]))

def in_bfloat16():
    weight = torch.ones(1, dtype=torch.bfloat16, requires_grad=True)
    for _ in range(2):
        (weight * weight).sum().backward()
    (weight.float() * 3).sum().backward()

def broken():
    torch.linalg.vector_norm = None      # so that our own code fails
    by_hand()
    open("survived", "w").close()

if sys.argv[2:]:
    import torch._dynamo          # optimizers import it, which takes a second in each child
for rank, name in enumerate(sys.argv[2:], 1):
    child = os.fork()
    if not child:
        os.environ["RANK"] = str(rank)
        globals()[name]()
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
globals()[sys.argv[1]]()
"""
VALUES = 5


def start(root: Path, seed: int | None, *names: str) -> Callable[[], Done]:
    """Start a trial: the first program in its main process, the others in children with rank 1, 2, ..."""
    root.mkdir()
    wanted = {"values": VALUES, "seed": seed}
    trial = Trial(root, [sys.executable, "job.py", *names], PROGRAMS, results=wanted)
    process = trial.start({"OMP_NUM_THREADS": "1"})

    def finish() -> Done:
        done = trial.finish(process)
        assert done.exit["state"] == "finished", done.log("stderr")
        return done

    return finish


def kept(done: Done, rank: int = 0) -> tuple[str, list[float]]:
    """Kind and values of a rank's results.json."""
    found = json.loads((done.folder / f"raw/rank{rank}/results.json").read_text())
    assert found["rank"] == rank
    return found["kind"], found["values"]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Three trials that run at the same time."""
    root = tmp_path_factory.mktemp("results")
    children = ("adversarial", "by_hand", "infer", "explicit", "random_words", "broken", "in_bfloat16")
    started = {
        "first": start(root / "first", 3, "draw", *children),
        "again": start(root / "again", 3, "draw"),
        "other": start(root / "other", 4, "draw"),
    }
    return {name: finish() for name, finish in started.items()}


def test_losses_are_those_of_the_program_and_backward_gets_its_place_back(trials: dict[str, Done]) -> None:
    *printed, original = trials["first"].log().splitlines()
    kind, values = kept(trials["first"], 1)
    assert kind == "loss"
    assert len(values) == VALUES
    assert values[::2] == [float(line) for line in printed[:3]], "two losses a step, and no other"
    assert all(values), "the loss that the program overwrites was copied before"
    assert original == "True"


def test_a_seed_makes_two_runs_equal_and_another_one_another(trials: dict[str, Done]) -> None:
    first, again, other = (kept(trials[name]) for name in ("first", "again", "other"))
    assert first == again != other
    assert not set(first[1]) & set(other[1])


def test_without_a_loss_the_parameters_are_kept(trials: dict[str, Done]) -> None:
    """Three parameters that start at 2 go down by a half; two stay 1."""
    assert kept(trials["first"], 2) == ("parameters", [6.5, 5.0, 3.5, 2.0, 3.5])


@pytest.mark.parametrize(("rank", "spacing"), [(0, 2**-23), (7, 2**-7), (2, None), (3, None)])
def test_of_losses_the_spacing_of_their_coarsest_type_is_kept(
    trials: dict[str, Done], rank: int, spacing: float | None
) -> None:
    """Rank 7 has losses in bfloat16 and one in fp32; ranks 2 and 3 have none."""
    found = json.loads((trials["first"].folder / f"raw/rank{rank}/results.json").read_text())
    assert found["spacing"] == spacing


@pytest.mark.parametrize("rank", [3, 4], ids=["module steps", "explicit steps"])
def test_of_inference_the_mean_of_what_the_root_returns_is_kept(trials: dict[str, Done], rank: int) -> None:
    """Of [2, 2 n, -6] in a nest, beside whole numbers and what is no tensor."""
    kind, values = kept(trials["first"], rank)
    assert kind == "output"
    assert values == pytest.approx([(2 + 2 * n + 6) / 3 for n in range(VALUES)], rel=1e-6)


def test_a_forked_child_that_computes_nothing_of_these_writes_nothing(trials: dict[str, Done]) -> None:
    assert not (trials["first"].folder / "raw/rank5").exists()


def test_an_error_of_the_hook_does_not_reach_the_program(trials: dict[str, Done]) -> None:
    done = trials["first"]
    assert (done.folder.parents[1] / "work/survived").exists()
    assert len(done.steps(6)["steps"]) == 9, "the steps are followed all the same"
    assert not (done.folder / "raw/rank6/results.json").exists()
    (warning,) = done.exit["warnings"]
    assert warning["code"] == "hook-failed"
    (error,) = (done.folder / "hook").glob("error*")
    assert "'NoneType' object is not callable" in error.read_text()


@pytest.mark.thorough  # torch._dynamo takes seconds more to import
def test_a_compiled_loss_is_kept_and_its_graph_stays_whole(tmp_path: Path) -> None:
    done = start(tmp_path / "compiled", None, "compiled")()
    printed = [line.split() for line in done.log().splitlines()]
    assert [breaks for _, breaks in printed] == ["0"] * 8
    assert kept(done) == ("loss", [float(loss) for loss, _ in printed[:VALUES]])


class Number:
    """Stands for a tensor of one number."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.layout, self.device = "strided", SimpleNamespace(type="cpu")

    dtype = "float32"

    def numel(self) -> int:
        return 1

    def detach(self) -> Number:
        return self

    def is_floating_point(self) -> bool:
        return True

    def clone(self) -> Number:
        return Number(self.value)

    def __float__(self) -> float:
        if self.value == 13:
            raise RuntimeError("the GPU is gone")
        return float(self.value)


EPS = 2.0**-23


class Process:
    """Stands for the hook's process."""

    def __init__(self) -> None:
        self.is_ignored = self.is_capturing = False

    def ignored(self) -> bool:
        return self.is_ignored

    def capturing(self) -> bool:
        return self.is_capturing


class Setting:
    """A watch, what stands for torch, and which losses torch's own backward was called on."""

    def __init__(self, values: int = 3) -> None:
        self.called: list[float] = []
        self.inner: Callable[[], None] = lambda: None
        self.own = self._backward
        self.torch: Any = SimpleNamespace(
            Tensor=Number,
            strided="strided",
            autograd=SimpleNamespace(backward=self.own),
            no_grad=contextlib.nullcontext,
            _C=None,
            finfo=lambda _dtype: SimpleNamespace(eps=EPS),
        )
        self.process = Process()
        process: Any = self.process
        self.watch = ResultWatch(process, self.torch, Results(values))
        self.watch.start()

    def _backward(self, tensors: Number) -> None:
        self.called.append(tensors.value)
        inner, self.inner = self.inner, lambda: None
        inner()

    def backward(self, *values: float) -> None:
        for value in values:
            self.torch.autograd.backward(Number(value))

    @property
    def values(self) -> tuple[float | None, ...]:
        return self.watch.read()[1]


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setattr(results, "wait_until_idle", lambda _torch: False)
    monkeypatch.setattr(results, "report", lambda _error: None)
    return Setting()


def test_after_the_last_value_nothing_of_ours_runs(setting: Setting) -> None:
    setting.backward(1, 2)
    assert setting.torch.autograd.backward != setting.own
    setting.backward(3, 4)
    assert setting.torch.autograd.backward == setting.own
    assert (setting.values, setting.called) == ((1, 2, 3), [1, 2, 3, 4])


def test_what_another_tool_puts_round_ours_stays(setting: Setting) -> None:
    ours = setting.torch.autograd.backward
    setting.torch.autograd.backward = theirs = lambda tensors: ours(tensors)
    setting.backward(1, 2, 3, 4)
    assert setting.torch.autograd.backward is theirs
    assert (setting.values, setting.called) == ((1, 2, 3), [1, 2, 3, 4])


def test_what_is_captured_or_called_in_a_worker_or_in_another_backward_or_thread_is_no_value(
    setting: Setting,
) -> None:
    setting.inner = lambda: setting.backward(10)
    setting.backward(1)
    setting.process.is_capturing = True
    setting.backward(11)
    setting.process.is_capturing, setting.process.is_ignored = False, True
    setting.backward(12)
    setting.process.is_ignored = False
    thread = threading.Thread(target=setting.backward, args=(14,))
    thread.start()
    thread.join()
    setting.backward(2)
    assert (setting.values, setting.called) == ((1, 2), [1, 10, 11, 12, 14, 2])


def test_a_backward_that_raises_raises_and_the_next_one_counts(setting: Setting) -> None:
    def fail() -> None:
        raise ArithmeticError

    setting.inner = fail
    with pytest.raises(ArithmeticError):
        setting.backward(1)
    setting.backward(2)
    assert setting.values == (1, 2)


@pytest.mark.parametrize(
    ("losses", "read"),
    [
        ((1, float("nan"), float("inf")), ("loss", (1, None, None), EPS)),
        ((1, 13), ("none", (), None)),  # reading the second one fails
        ((), ("none", (), None)),
    ],
)
def test_what_is_not_finite_or_cannot_be_read(setting: Setting, losses: tuple[float, ...], read: Any) -> None:
    setting.backward(*losses)
    assert setting.watch.read() == read


def test_a_forked_child_keeps_its_own_values_only_where_the_parent_had_none(setting: Setting) -> None:
    setting.watch.after_fork()
    setting.backward(1)
    assert setting.values == (1,)
    setting.watch.after_fork()
    setting.backward(2)
    assert setting.values == ()
    assert setting.torch.autograd.backward == setting.own


def test_outputs_are_wanted_for_so_many_calls_and_until_a_loss_is_seen(setting: Setting) -> None:
    for _ in range(3):
        assert setting.watch.wants_outputs
        setting.process.is_capturing = True
        setting.watch.returned("text")
        setting.process.is_capturing = False
        setting.watch.returned("text")
    assert not setting.watch.wants_outputs, "also where no call returns a number"
    other = Setting()
    other.backward(1)
    assert not other.watch.wants_outputs
