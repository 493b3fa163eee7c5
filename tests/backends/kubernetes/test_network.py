"""The network of pods that are to have none."""

from __future__ import annotations

import pytest

from profrun.backends.kubernetes.network import not_allowed, policy
from profrun.backends.kubernetes.refusals import Refused
from profrun.errors import UnavailableError


def test_pods_of_one_node_reach_nothing() -> None:
    made = policy("job-0", {"labels": {"a": "b"}}, nodes=1)
    assert made["metadata"] == {"name": "job-0", "labels": {"a": "b"}}
    assert made["spec"] == {
        "podSelector": {"matchLabels": {"batch.kubernetes.io/job-name": "job-0"}},
        "policyTypes": ["Ingress", "Egress"],
    }


def test_pods_of_a_trial_of_several_nodes_reach_each_other_and_names() -> None:
    spec = policy("job-0", {}, nodes=2)["spec"]
    mine = {"podSelector": spec["podSelector"]}
    assert spec["ingress"] == [{"from": [mine]}]
    assert spec["egress"][0] == {"to": [mine]}
    assert {port["port"] for port in spec["egress"][1]["ports"]} == {53, 5353}


@pytest.mark.parametrize(("status", "said"), [(403, "the pods' network cannot be turned off"), (500, "no")])
def test_only_a_missing_right_is_explained(status: int, said: str) -> None:
    assert str(not_allowed(Refused(status, "no"))).startswith(said)
    assert str(not_allowed(UnavailableError("no"))) == "no"
