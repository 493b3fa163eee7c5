"""What runs in the place of modules, in real programs with CPU torch; a graph is torch's class without a GPU.

Importing torch costs seconds: the programs are forked children of one process, each with steps of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.in_job.kit import Done, Trial

PROGRAMS = """
import os, sys, torch
from torch.utils.data import DataLoader

class Work:
    def __init__(self):
        self.graph = object.__new__(torch.cuda.CUDAGraph)      # torch without CUDA makes none
        self.graph._tracker = None

def loader():
    for epoch in range(2):
        for x in DataLoader(torch.arange(12.0), batch_size=4, num_workers=epoch):
            (x * 2).sum()

def fetched():                    # the data set is copied, then worked on
    data = list(DataLoader(torch.arange(12.0), batch_size=4))
    net = torch.nn.Linear(4, 1)
    for _ in range(5):
        net(data[0])

def replays():
    graph, net = Work().graph, torch.nn.Linear(2, 2)
    for _ in range(3):            # the warm-up, and what is captured, is no step
        net(torch.ones(2))
    graph.capture_begin()
    net(torch.ones(2))
    graph.capture_end()
    for _ in range(6):
        torch.ones(3).add_(1)     # eager code round the replay
        graph.replay()

def in_module():
    graph = Work().graph
    class Net(torch.nn.Linear):
        def forward(self, x):
            for _ in range(4):
                graph.replay()
            return super().forward(x)
    net = Net(2, 2)
    for _ in range(5):
        net(torch.ones(2))

def compiled():
    @torch.compile(backend="eager")
    def inner(x):
        return x + 1
    @torch.compile(backend="eager", fullgraph=True)
    def outer(x):
        "Adds."
        return inner(inner(x))
    def again(x):
        return x - 1
    assert (outer.__name__, outer.__doc__) == ("outer", "Adds.")
    x = torch.zeros(2)
    for _ in range(5):
        x = outer(x)
        x = inner(x)
        torch.compile(again, backend="eager")(x)
    assert x[0] == 15 and not torch._dynamo.utils.counters["graph_break"]

base = torch.cuda.CUDAGraph.__bases__[0]
base.capture_begin = lambda self, **_: None
base.capture_end = base.replay = lambda self: None
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        globals()[name]()
        with open("pid." + name, "w") as file:
            file.write(str(os.getpid()))
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
"""


def run(root: Path, *names: str) -> tuple[Done, dict[str, tuple[str, int]]]:
    """The trial, and how each program's steps were found and how many there are."""
    trial = Trial(root, [sys.executable, "job.py", *names], PROGRAMS)
    done = trial.run({"OMP_NUM_THREADS": "1"})
    assert done.exit["state"] == "finished", done.log("stderr")
    found = [json.loads(path.read_text()) for path in (done.folder / "raw/rank0").glob("steps*.json")]
    by_pid = {row["pid"]: (row["how"], len(row["steps"])) for row in found}
    return done, {name: by_pid[int((trial.work / f"pid.{name}").read_text())] for name in names}


@pytest.mark.thorough
def test_batches_and_replays_are_steps_where_no_module_is_called(tmp_path: Path) -> None:
    done, found = run(tmp_path, "loader", "fetched", "replays", "in_module")
    assert found == {
        "loader": ("loader", 6),
        "fetched": ("module", 5),
        "replays": ("graph", 6),
        "in_module": ("module", 5),
    }
    assert not list((done.folder / "hook").glob("error*"))


@pytest.mark.thorough  # torch._dynamo takes seconds more to import
def test_calls_of_a_compiled_function_are_steps_and_what_it_calls_is_none(tmp_path: Path) -> None:
    _done, found = run(tmp_path, "compiled")
    assert found == {"compiled": ("compiled", 5)}
