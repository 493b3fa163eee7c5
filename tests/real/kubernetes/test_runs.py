"""Jobs on a real API server, controllers and scheduler: what a user submits, to its end."""

from __future__ import annotations

import json

import pytest

import profrun
from tests.real.kubernetes.conftest import Desk
from tests.support.containers import CALLER_UID
from tests.support.kube_api import Object

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

WORK = """
import sys, time, torch
layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
x = torch.randn(int(sys.argv[1]), 64)
with torch.no_grad():
    for _ in range(8):
        layer(x)
        time.sleep(0.005)
"""


DDP = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
# One write: two ranks share a pod's output, and the parts of a print may come between each other.
os.write(1, f"world of {os.environ['WORLD_SIZE']} on {os.uname().nodename}\n".encode())
"""


def test_none_torch_and_nsys_run_to_their_end_with_traces(desk: Desk) -> None:
    desk.cli.write("work.py", WORK)
    document = desk.submit(
        "python work.py {n}",
        "variants: {small: {n: 8}, large: {n: 64}}\ncollectors: [none, torch, nsys]\n"
        "resources: {gpus: 0, timeout: 5m, grace: 30s, cpus: 1, memory: 2GiB}",
        parallel=2,
    )
    assert ends(document) == [("finished", None)] * 6, document["said"]
    assert all(trial["steps"] == 8 and trial["trace"] for trial in document["trials"])
    owners = {path.stat().st_uid for path in desk.run_folder().rglob("*")}
    assert owners == {CALLER_UID}
    (job,) = desk.jobs()
    assert job["status"]["completedIndexes"] == "0-5"
    images = json.loads((desk.run_folder() / "kubernetes/images.json").read_text())
    assert len(images) == 6
    assert len(set(images.values())) == 1


@pytest.mark.parametrize("collector", ["none", "torch", "nsys"])
def test_two_nodes_with_four_ranks_give_one_trace(desk: Desk, collector: str) -> None:
    """torchrun finds the first pod by the name that the headless Service gives it."""
    desk.cli.write("work.py", DDP)
    document = desk.submit(
        "torchrun work.py",
        f"collectors: [{collector}]\n"
        "resources: {gpus: 0, nodes: 2, ranks_per_node: 2, timeout: 8m, grace: 60s}",
    )
    assert ends(document) == [("finished", None)], document["said"]
    (folder,) = desk.trial_folders()
    with profrun.open(folder / "trace") as trace:
        ranks = trace.sql("SELECT DISTINCT rank FROM processes ORDER BY rank").rows
        steps = trace.sql(
            "SELECT rank, count(*) FROM step_times JOIN processes USING (process) GROUP BY 1 ORDER BY 1"
        ).rows
    assert ranks == [(0,), (1,), (2,), (3,)]
    assert steps == [(rank, 8) for rank in range(4)]
    said = {path.name: path.read_text() for path in folder.glob("stdout*.log")}
    assert {name: text.count("world of 4") for name, text in said.items()} == dict.fromkeys(said, 2), said
    assert len(said) == 2


def ends(document: Object) -> list[tuple[str, str | None]]:
    """State and reason of each trial."""
    return [(trial["state"], trial.get("reason")) for trial in document["trials"]]
