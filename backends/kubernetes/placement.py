"""Where pods run and as whom: what the cluster block says, in the words of Kubernetes. Pure."""

from __future__ import annotations

import copy
from typing import Any

from profrun.backends.kubernetes.objects import ApiObject, Manifest
from profrun.backends.kubernetes.resource_groups import NodeChoice
from profrun.contract.codec import given_json, to_json
from profrun.jobs.cluster import ClusterSettings, Toleration

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def placement(settings: ClusterSettings) -> Manifest:
    """Fields of a pod: only what the cluster block says."""
    found: Manifest = {
        "serviceAccountName": settings.service_account,
        "priorityClassName": settings.priority_class,
        "schedulerName": settings.scheduler_name,
        "runtimeClassName": settings.runtime_class,
        "nodeSelector": dict(settings.node_selector or {}),
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets or ()],
        "tolerations": [_toleration(toleration) for toleration in settings.tolerations or ()],
        "affinity": to_json(settings.affinity or {}),
        "hostIPC": settings.host_ipc,
        "securityContext": _groups(settings),
    }
    return {name: value for name, value in found.items() if value}


def _groups(settings: ClusterSettings) -> Manifest:
    """Of the pod's security context. A volume that belongs to the group already is not walked through again,
    which takes long where the claim holds many files."""
    found: Manifest = {}
    if settings.fs_group is not None:
        found = {"fsGroup": settings.fs_group, "fsGroupChangePolicy": "OnRootMismatch"}
    if settings.supplemental_groups:
        found["supplementalGroups"] = list(settings.supplemental_groups)
    return found


def _toleration(toleration: Toleration) -> dict[str, object]:
    given = given_json(toleration)
    return {("tolerationSeconds" if name == "seconds" else name): value for name, value in given.items()}


def topology_spread(settings: ClusterSettings, labels: ApiObject) -> Manifest:
    """``topologySpreadConstraints``, empty where the job gives none.

    Args:
        labels: of the pods that are counted where a constraint does not say which.
    """
    mine = {"labelSelector": {"matchLabels": dict(labels)}}
    found = [{**mine, **to_json(item)} for item in settings.topology_spread or ()]
    return {"topologySpreadConstraints": found} if found else {}


def with_nodes(affinity: ApiObject, nodes: NodeChoice) -> Manifest:
    """An affinity that also asks for the nodes that were chosen, any of which will do.

    Args:
        affinity: of a pod; what it asks for itself still holds.
    """
    found: dict[str, Any] = copy.deepcopy(dict(affinity))
    rule = found["nodeAffinity"] = dict(found.get("nodeAffinity") or {})
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in nodes.names]
    if nodes.firm:
        terms = (rule.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
        # One term must hold, and all that a term asks for.
        named = [
            {**term, "matchFields": [*(term.get("matchFields") or ()), field]}
            for term in terms
            for field in fields
        ]
        rule[_REQUIRED] = {"nodeSelectorTerms": named}
    else:
        wished = [{"weight": 100, "preference": {"matchFields": [field]}} for field in fields]
        rule[_PREFERRED] = [*(rule.get(_PREFERRED) or ()), *wished]
    return found
