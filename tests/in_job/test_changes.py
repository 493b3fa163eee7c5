"""All changes of a process: which there are, and a whole trial with some of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profrun.contract.changes import CHANGES
from profrun.in_job.changes import MAKERS
from tests.in_job.kit import Trial


def test_every_change_in_which_the_hook_has_a_part_is_made() -> None:
    assert set(MAKERS) == {name for name, kind in CHANGES.items() if kind.hook}


TRAIN = """
import os, subprocess, sys, torch
if len(sys.argv) > 1:                       # prepares data: no steps, no optimizer
    sys.exit()
subprocess.run([sys.executable, __file__, "prepare"], check=True)
net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Dropout(0.5))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.ones(10, 4), batch_size=2):
    net(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
child = os.fork()
if not child:
    net(torch.ones(1, 4))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(optimizer.param_groups[0]["fused"], net(torch.ones(1, 4)).dtype)
"""


def test_a_trial_says_what_was_applied_and_helpers_say_nothing(tmp_path: Path) -> None:
    """The hook of the session, DataLoader workers, a forked child, and a process that prepares data."""
    changes = ("loader-workers=2", "fused-optimizer", "autocast", "bucket-size=50", "channels-last")
    done = Trial(tmp_path, [sys.executable, "job.py"], TRAIN, changes=changes).run({"OMP_NUM_THREADS": "1"})
    assert done.exit["state"] == "finished", done.log("stderr")
    assert done.exit["steps"] == {"how": "optimizer", "count": 5}
    assert done.log().strip() == "True torch.float32"
    assert done.warnings == [
        "channels-last changed nothing: Sequential: it has no 4-dimensional parameters",
        "autocast=bfloat16: 1 root module (Sequential) under autocast in bfloat16",
        "loader-workers=2: 1 DataLoader got 2 worker processes",
        "fused-optimizer: 1 optimizer got fused=True (AdamW)",
        "bucket-size=50 changed nothing: the program made no DistributedDataParallel",
    ]
    assert not list((done.folder / "hook").glob("error*"))


COMPILED = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 2)
    def forward(self, x):
        return self.lin(x).relu()
net = Net()
net.eval()
with torch.no_grad():
    for _ in range(12):
        y = net(torch.ones(3, 4))
print(torch._dynamo.utils.counters["graph_break"])
"""


@pytest.mark.thorough  # compiles with Inductor
def test_steps_and_modules_of_a_compiled_root_are_still_found(tmp_path: Path) -> None:
    schedule = {"wait": 5, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 0}
    done = Trial(
        tmp_path,
        [sys.executable, "job.py"],
        COMPILED,
        changes=("compile", "autocast"),
        collector="torch",
        schedule=schedule,
        ranges={"modules": 2, "steps": "auto"},
        timeout_s=200.0,
    ).run({"OMP_NUM_THREADS": "1"})
    assert done.exit["state"] == "finished", done.log("stderr")
    assert done.exit["steps"] == {"how": "module", "count": 12}
    assert done.exit["ranges_emitted"] > 0
    assert done.log().strip() == "Counter()"
    assert [text for text in done.warnings if text.startswith(("compile", "autocast"))] == [
        "compile=default: 1 root module (Net) compiled",
        "autocast=bfloat16: 1 root module (Net) under autocast in bfloat16",
    ]


def test_without_changes_nothing_of_them_is_loaded(tmp_path: Path) -> None:
    code = "import torch, sys\nprint([name for name in sys.modules if 'changes' in name])"
    done = Trial(tmp_path, [sys.executable, "-c", code]).run()
    assert done.log().strip() == "[]"
