"""Where pods run: the keys of the cluster block in the words of Kubernetes."""

from __future__ import annotations

from typing import Any

from profrun.backends.kubernetes.placement import placement, topology_spread, with_nodes
from profrun.backends.kubernetes.resource_groups import NodeChoice
from profrun.jobs.cluster import ClusterSettings, Toleration

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def named(name: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [name]}


def test_only_what_the_job_says_is_in_the_pod() -> None:
    assert placement(ClusterSettings()) == {}
    assert placement(ClusterSettings(host_ipc=False)) == {}
    assert topology_spread(ClusterSettings(), {"a": "b"}) == {}


def test_each_key_has_its_field() -> None:
    settings = ClusterSettings(
        scheduler_name="volcano",
        runtime_class="nvidia",
        host_ipc=True,
        fs_group=2000,
        supplemental_groups=(3000, 4000),
        tolerations=(Toleration(key="gpu", seconds=30),),
        affinity={"podAffinity": {}},
    )
    assert placement(settings) == {
        "schedulerName": "volcano",
        "runtimeClassName": "nvidia",
        "tolerations": [{"key": "gpu", "tolerationSeconds": 30}],
        "affinity": {"podAffinity": {}},
        "hostIPC": True,
        "securityContext": {
            "fsGroup": 2000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "supplementalGroups": [3000, 4000],
        },
    }


def test_pods_are_spread_among_those_of_their_job_unless_the_job_says_among_which() -> None:
    own = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"team": "a"}}}
    settings = ClusterSettings(topology_spread=({"topologyKey": "rack"}, own))
    assert topology_spread(settings, {"job": "x"}) == {
        "topologySpreadConstraints": [
            {"labelSelector": {"matchLabels": {"job": "x"}}, "topologyKey": "rack"},
            own,
        ]
    }


def test_the_nodes_of_the_first_trial_are_asked_for_beside_what_the_job_asks_for() -> None:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, {"matchFields": [named("n9")]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}, "podAffinity": {"a": 1}}
    found = with_nodes(affinity, NodeChoice(("n1", "n2")))
    assert found["podAffinity"] == {"a": 1}
    assert found["nodeAffinity"] == {
        REQUIRED: {
            "nodeSelectorTerms": [
                {**terms[0], "matchFields": [named("n1")]},
                {**terms[0], "matchFields": [named("n2")]},
                {"matchFields": [named("n9"), named("n1")]},
                {"matchFields": [named("n9"), named("n2")]},
            ]
        }
    }
    assert affinity["nodeAffinity"] == {
        REQUIRED: {"nodeSelectorTerms": terms}
    }  # it is given to other pods, too


def test_nodes_that_cannot_be_looked_at_are_preferred_beside_what_the_job_prefers() -> None:
    wish = {"weight": 1, "preference": {"matchExpressions": []}}
    affinity = {"nodeAffinity": {PREFERRED: [wish]}}
    found = with_nodes(affinity, NodeChoice(("n1",), firm=False))
    mine = {"weight": 100, "preference": {"matchFields": [named("n1")]}}
    assert found == {"nodeAffinity": {PREFERRED: [wish, mine]}}
    assert with_nodes({}, NodeChoice(("n1",), firm=False)) == {"nodeAffinity": {PREFERRED: [mine]}}
