"""How trials end on a real API server: evicted, cancelled, their driver killed; what is kept and left."""

from __future__ import annotations

import itertools
import json
import signal
from datetime import datetime

import pytest

from tests.real.kubernetes.conftest import Desk
from tests.real.kubernetes.test_runs import ends
from tests.support.containers import until
from tests.support.kube_api import Object

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

ONCE = """
import pathlib, time
once = pathlib.Path("once")
if not once.exists():
    once.touch()
    time.sleep(600)
"""
ENDLESS = """
import time, torch
x = torch.randn(8, 64)
layer = torch.nn.Linear(64, 64)
with torch.no_grad():
    while True:
        layer(x)
        time.sleep(0.005)
"""
IN_TURN = 'import sys, time\ntime.sleep(2)\nopen("ran", "a").write(sys.argv[1])\n'


def test_an_evicted_trial_is_kept_and_a_second_pod_finishes_it(desk: Desk) -> None:
    """By the Eviction API, as `kubectl drain` does it; the Job controller makes the second pod."""
    desk.cli.write("work.py", ONCE)
    desk.spec("python work.py", "collectors: [none]\nresources: {gpus: 0, timeout: 5m, grace: 5s}")
    process = desk.start("--json")
    until((desk.folder / "once").exists, "the program")
    (pod,) = desk.pods()
    name = pod["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    desk.plane.api.post(f"{desk.path}/pods/{name}/eviction", eviction)
    document = desk.finish(process)
    assert ends(document) == [("finished", None)], document["said"]
    (folder,) = desk.trial_folders()
    first = json.loads((folder / "attempts/1/exit.json").read_text())
    assert (first["state"], first["stopped_by"], first["attempt"]) == ("timeout", "SIGTERM", 1)
    assert json.loads((folder / "exit.json").read_text())["attempt"] == 2
    assert pod["metadata"]["uid"] not in {each["metadata"]["uid"] for each in desk.pods()}


@pytest.mark.parametrize("how", ["Ctrl-C", "profrun cancel"])
def test_a_cancelled_trial_keeps_its_report_and_leaves_nothing(desk: Desk, how: str) -> None:
    desk.cli.write("work.py", ENDLESS)
    desk.spec("python work.py", "collectors: [torch]\nresources: {gpus: 0, timeout: 5m, grace: 20s}")
    process = desk.start("--json")
    until(lambda: list(desk.folder.glob("runs/*/trials/*/raw/rank0/*.pt.trace.json.gz")), "the report")
    if how == "Ctrl-C":
        process.send_signal(signal.SIGINT)
    else:
        assert desk.begin("cancel", "last").wait(120) == 0
    document = desk.finish(process)
    (trial,) = document["trials"]
    assert (trial["state"], document["exit_code"]) == ("cancelled", 1), document["said"]
    assert trial["trace"]
    assert (desk.run_folder() / "report.html").exists()
    assert desk.containers() == []
    until(lambda: not desk.jobs() and not desk.pods(), "the end of the Job and its pods")


def test_a_driver_killed_in_the_middle_repeats_nothing_and_keeps_order_and_nodes(desk: Desk) -> None:
    """`resume` adopts the Job that runs; trials of a comparison run one after another on one node."""
    desk.cli.write("work.py", IN_TURN)
    desk.spec(
        "python work.py {n}",
        "variants: {a: {n: A}, b: {n: B}, c: {n: C}}\ncollectors: [none]\n"
        "resources: {gpus: 0, timeout: 60s, grace: 5s}",
    )
    process = desk.start()
    until((desk.folder / "ran").exists, "the first trial")
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    document = desk.finish(desk.begin("resume", "last", "--json"))
    assert ends(document) == [("finished", None)] * 3, document["said"]
    assert (desk.folder / "ran").read_text() == "ABC"
    pods = sorted(desk.pods(), key=lambda pod: began(pod))
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    assert len(pods) == 3
    for one, following in itertools.pairwise(pods):
        assert ended(one) <= began(following)


def test_trials_of_several_nodes_run_in_turn_on_the_nodes_of_the_first(desk: Desk) -> None:
    desk.add_node()
    desk.cli.write("work.py", IN_TURN)
    document = desk.submit(
        "python work.py {n}",
        "variants: {a: {n: A}, b: {n: B}}\ncollectors: [none]\n"
        "resources: {gpus: 0, nodes: 2, timeout: 60s, grace: 5s}",
        topology_spread=[
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    )
    assert ends(document) == [("finished", None)] * 2, document["said"]
    assert sorted((desk.folder / "ran").read_text()) == ["A", "A", "B", "B"]
    first, second = sorted(desk.jobs(), key=lambda job: str(job["metadata"]["creationTimestamp"]))
    pods = [[pod for pod in desk.pods() if owner(pod) == job["metadata"]["name"]] for job in (first, second)]
    nodes = [{pod["spec"]["nodeName"] for pod in group} for group in pods]
    assert nodes[0] == nodes[1]
    assert len(nodes[0]) == 2
    told = [json.loads((folder / "exit.json").read_text())["nodes"] for folder in desk.trial_folders()]
    assert told == [sorted(nodes[0])] * 2
    made = datetime.fromisoformat(second["metadata"]["creationTimestamp"])
    assert all(ended(pod) <= made for pod in pods[0])


def owner(pod: Object) -> str:
    """Name of a pod's Job."""
    return str(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"])


def state(pod: Object) -> Object:
    """How its container ended."""
    (container,) = pod["status"]["containerStatuses"]
    found: Object = container["state"]["terminated"]
    return found


def began(pod: Object) -> datetime:
    return datetime.fromisoformat(state(pod)["startedAt"])


def ended(pod: Object) -> datetime:
    return datetime.fromisoformat(state(pod)["finishedAt"])
