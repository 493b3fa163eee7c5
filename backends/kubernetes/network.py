"""The network of a run's pods, when the job asks for none: a NetworkPolicy a Job. Pure.

kubernetes.io/docs/concepts/services-networking/network-policies: a policy that selects a pod and names a
direction denies everything in that direction that no rule allows. Only the cluster's network plugin enforces
it; where none does, it has no effect. Volumes are mounted by the node and are not touched by it.
"""

from __future__ import annotations

from profrun.backends.kubernetes.objects import ApiObject, Manifest
from profrun.backends.kubernetes.refusals import http_status
from profrun.backends.kubernetes.states import JOB
from profrun.errors import ProfrunError, UnavailableError

_DNS = (53, 5353)
"""Ports of the cluster's name service as a pod's packets reach it; 5353 is OpenShift's."""


def policy(name: str, metadata: ApiObject, *, nodes: int) -> Manifest:
    """Nothing in and nothing out for the pods of the Job ``name``.

    Pods of one trial of several nodes reach each other, on any port, and a name service, by which they find
    each other. Which pods are the name service differs between clusters, so only its ports are named.
    """
    mine = {"matchLabels": {JOB: name}}
    spec: Manifest = {"podSelector": mine, "policyTypes": ["Ingress", "Egress"]}
    if nodes > 1:
        dns = [{"protocol": protocol, "port": port} for port in _DNS for protocol in ("UDP", "TCP")]
        spec["ingress"] = [{"from": [{"podSelector": mine}]}]
        spec["egress"] = [{"to": [{"podSelector": mine}]}, {"ports": dns}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def not_allowed(error: ProfrunError) -> ProfrunError:
    """The error to raise where the policy could not be made: the run must not go on with a network."""
    if http_status(error) != 403:
        return error
    return UnavailableError(
        "the pods' network cannot be turned off",
        why=str(error),
        fix="ask for the right to create networkpolicies, or set network: true in the job",
    )
