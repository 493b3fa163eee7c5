"""Which trials share a Job, and what their pods are given."""

from __future__ import annotations

from profrun.backends.base import Lane
from profrun.backends.kubernetes.resource_groups import lane_of
from profrun.plans.model import Plan
from tests.backends.kubernetes.made import CASES, NGC, bundles, pod
from tests.backends.plans import plan


def test_one_job_holds_all_trials_of_a_shape_and_each_node_trial_has_its_own() -> None:
    (one,) = bundles(plan(**CASES["nvidia"]))
    assert one.job["spec"]["completions"] == 8
    assert one.job["spec"]["parallelism"] == 4
    assert pod(one)["containers"][0]["args"] == [trial.id for trial in one.trials]
    many = bundles(plan(**CASES["nodes"]))
    assert [bundle.job["spec"]["completions"] for bundle in many] == [2] * 8
    assert len({bundle.name for bundle in many}) == 8


def test_trials_wait_in_their_job_or_for_the_driver() -> None:
    alike = plan(**CASES["nvidia"])
    assert {lane_of(alike, trial) for trial in alike.trials} == {Lane("", 4, together=True)}
    nodes = plan(**CASES["nodes"])
    assert {lane_of(nodes, trial) for trial in nodes.trials} == {Lane("")}


def test_only_a_collector_that_needs_a_capability_gets_one() -> None:
    made = plan(image=NGC, cluster="pvc: runs, vendor: nvidia")
    job = made.job
    with_metrics = [
        trial
        if trial.collector != "nsys"
        else type(trial)(**{**vars(trial), "options": {"nsys": {"sample": "process-tree"}}})
        for trial in made.trials
    ]
    each = bundles(Plan(job, tuple(with_metrics), made.vendor))
    assert [bundle.trials for bundle in each] == [(trial,) for trial in with_metrics]  # in the plan's order
    plain, able = each[0], next(b for b in each if b.trials[0].collector == "nsys")
    context = pod(plain)["containers"][0]["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert (context["runAsUser"], context["runAsNonRoot"]) == (1000, True)
    assert {trial.collector for trial in able.trials} == {"nsys"}
    asked = pod(able)["containers"][0]
    assert asked["securityContext"]["capabilities"]["add"] == ["PERFMON", "SETGID", "SETPCAP", "SETUID"]
    # Root without DAC_OVERRIDE may not write into the caller's folder: setpriv comes before the script.
    assert asked["command"][:5] == ["setpriv", "--reuid", "1000", "--regid", "1000"]
    assert asked["command"][8:11] == ["--bounding-set=-all,+perfmon", "--", "/bin/sh"]
