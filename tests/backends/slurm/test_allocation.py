"""When trials share an allocation, and whether they fit into the one that is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profrun.backends.slurm.allocation import (
    Inside,
    check_fits,
    clock_seconds,
    inside_of,
    need_s,
    parse_limits,
    settled,
    told,
)
from profrun.errors import UsageError
from tests.backends.plans import plan

HOUR = 3600.0
SHOWN = "JobId=7 JobName=x JobState=RUNNING NumNodes=2 TRES=cpu=8,node=2 TresPerNode=gres:gpu:h200:3"


def test_the_time_of_all_trials_is_the_sum_of_their_limits() -> None:
    # 4 trials without and 4 with nsys: grace 60 s and 60 s for the rest each, twice 5 s or 120 s to write.
    made = plan(resources="timeout: 10m")
    assert need_s(made, made.trials) == 60 + 4 * (600 + 60 + 10 + 60) + 4 * (600 + 60 + 240 + 60)


@pytest.mark.parametrize(
    ("resources", "cluster", "limits", "expected"),
    [
        ("timeout: 5m", "", {}, "one"),
        ("timeout: 30m", "", {}, "each"),  # 8 x 30 min are more than four hours
        ("timeout: 30m", "time: '8:00:00'", {}, "one"),
        ("timeout: 5m", "time: '1:00:00'", {}, "each"),
        ("timeout: 5m", "", {"": HOUR}, "each"),  # the default partition's limit
        ("timeout: 5m", "partition: long", {"": HOUR, "long": 4 * HOUR}, "one"),
        ("timeout: 5m", "parallel: 2", {}, "each"),
        ("timeout: 5m", "allocation: each", {}, "each"),
        ("timeout: 30m", "allocation: one", {}, "one"),
    ],
)
def test_trials_share_an_allocation_where_they_fit_a_time_limit(
    resources: str, cluster: str, limits: dict[str, float], expected: str
) -> None:
    made = settled(plan(resources=resources, cluster=cluster), limits)
    assert made.job.cluster.of_site(None).allocation == expected


def test_each_site_is_decided_by_itself() -> None:
    made = settled(plan(resources="timeout: 5m", cluster="sites: {a: {}, b: {parallel: 4}}"), {})
    assert [made.job.cluster.of_site(name).allocation for name in "ab"] == ["one", "each"]


def test_one_allocation_and_trials_at_the_same_time_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot share one allocation and run at the same time"):
        settled(plan(cluster="allocation: one, parallel: 2"), {})


def test_limits_of_partitions_are_read() -> None:
    assert parse_limits("gpu*|1:00:00\nlong|7-00:00:00\nany|infinite\n") == {
        "gpu": HOUR,
        "": HOUR,
        "long": 7 * 24 * HOUR,
    }
    assert clock_seconds("30:00") == 1800


def test_the_allocation_around_profrun() -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_GPUS_PER_NODE": "h200:4"}
    assert inside_of(environ, plan()) == Inside("7", 2, 4)
    assert inside_of({}, plan()) is None
    assert inside_of(environ, plan(cluster="allocation: each")) is None
    assert inside_of(environ, plan(cluster="sites: {a: {}, b: {}}")) is None
    assert told(Inside("7", 1), SHOWN) == Inside("7", 2, 3)
    made = settled(plan(), {}, Inside("7", 2, 4))
    assert made.job.cluster.allocation == "one"


def test_an_allocation_that_has_ended_is_refused() -> None:
    with pytest.raises(UsageError, match="does not run"):
        told(Inside("7", 1), SHOWN.replace("RUNNING", "TIMEOUT"))


def test_trials_that_do_not_fit_are_refused_with_the_command_that_goes_on() -> None:
    made = plan(resources="gpus: 4, nodes: 2, ranks_per_node: 4")
    check_fits(made, Inside("7", 2, 4))
    check_fits(made, Inside("7", 2, None))  # Slurm does not say; srun does
    with pytest.raises(UsageError) as caught:
        check_fits(made, Inside("7", 1, 2))
    assert "2 nodes, and it has 1 and 4 GPUs on a node, and it has 2" in str(caught.value)
    assert "salloc --nodes=2 --ntasks-per-node=4 --gpus-per-node=4" in str(caught.value)


def test_a_launcher_needs_one_task_on_each_node() -> None:
    made = plan(command="torchrun train.py {batch}", resources="nodes: 2, ranks_per_node: 4")
    with pytest.raises(UsageError, match="--ntasks-per-node=1"):
        check_fits(replace(made), Inside("7", 1))
