"""``cluster.pod_patch``: what a site needs of its pods and has no key for, laid over the template. Pure.

It may not change what profrun itself relies on, and it may make the pods less secure only by the fields that
``cluster.pod_patch_allow`` names. Containers that it adds get the security context that a trial's container
without capabilities has, wherever they do not say otherwise.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from profrun.backends.kubernetes.loosening import CONTAINERS, loosenings, map_in, maps_in
from profrun.backends.kubernetes.objects import TRIAL, ApiObject, Manifest
from profrun.backends.kubernetes.resource_groups import Caller, security
from profrun.backends.kubernetes.strategic_merge import MERGE_KEYS, MergeError, Path, merge, path_text
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings

_KEY = "cluster.pod_patch"
_AT: Path = ("spec", "containers", TRIAL)
_MEET = "leave it out: the pods of a trial find each other by it"
_OF_POD: Mapping[str, str] = {
    "restartPolicy": "leave it out: a container that started again would write over its trial",
    "terminationGracePeriodSeconds": "use resources.grace",
    "activeDeadlineSeconds": "use cluster.time",
    "subdomain": _MEET,
    "hostname": _MEET,
}
"""Field of a pod that a patch may not change -> what to do instead."""
_OF_TRIAL: Mapping[str, str] = {
    "name": "leave the container in: the trial runs in it",
    "image": "use image of the job",
    "command": "use command of the job",
    "args": "use command of the job",
    "envFrom": "write single variables under env of the container; the job's secrets are in envFrom",
}
"""The same of the trial's container."""
_VARIABLE = re.compile(r"\$\{?([A-Z][A-Z_]+)|\b([A-Z][A-Z_]+)=")
"""A variable that a script reads or sets."""


@dataclass(frozen=True)
class Kept:
    """A part of the template that a patch may not change.

    Attributes:
        fix: what to do instead.
    """

    path: Path
    fix: str


def patched(template: Manifest, settings: ClusterSettings, caller: Caller) -> Manifest:
    """The template with the patch laid over it; the template itself where the job has no patch.

    Args:
        template: of a Job whose container ``trial`` has its command.
        caller: as whom containers run that the patch adds.

    Raises:
        UsageError: the patch does not fit, changes what profrun relies on, or loosens security without being
            allowed to; the message names the place in the patch.
    """
    patch = settings.pod_patch
    if not patch:
        return template
    unknown = [key for key in patch if key not in ("metadata", "spec")]
    if unknown:
        raise UsageError(
            f"{_KEY}.{unknown[0]} is no part of a pod's template",
            why="a patch has the keys metadata and spec",
            fix=f"write {_KEY}: {{spec: {{{unknown[0]}: ...}}}}",
        )
    try:
        merged = _confined(merge(template, patch), caller)
    except MergeError as error:
        raise UsageError(f"{_KEY}.{error}", fix="mend the patch; docs/kubernetes.md explains it") from None
    _check_kept(template, merged)
    _check_ends(template, merged)
    _check_security(template, merged, settings)
    return merged


def _check_kept(base: Manifest, merged: Manifest) -> None:
    """Refuse a patch that changes what profrun relies on."""
    for kept in _kept(base, merged):
        if _at(base, kept.path) != _at(merged, kept.path):
            raise UsageError(
                f"{_KEY}.{path_text(kept.path)} cannot be changed", why="profrun relies on it", fix=kept.fix
            )


def _kept(base: Manifest, merged: Manifest) -> Iterator[Kept]:
    for kind in ("labels", "annotations"):
        for name in base["metadata"][kind]:
            yield Kept(("metadata", kind, name), f"leave it out, or use cluster.{kind} for your own")
    for name, fix in _OF_POD.items():
        yield Kept(("spec", name), fix)
    for name, fix in _OF_TRIAL.items():
        yield Kept((*_AT, name), fix)
    for name in ("runAsUser", "runAsGroup"):
        yield Kept((*_AT, "securityContext", name), "leave it out: the run's folder belongs to this user")
    yield from _kept_items(base, merged)


def _kept_items(base: Manifest, merged: Manifest) -> Iterator[Kept]:
    """Variables, mounts, volumes and resources that the template has."""
    (container,) = base["spec"]["containers"]
    used = {found[0] or found[1] for found in _VARIABLE.findall(" ".join(container["command"]))}
    for name in sorted(used | {item["name"] for item in container["env"]}):
        yield Kept((*_AT, "env", name), "write the variable under env of the job")
    for item in container["volumeMounts"]:
        places = {item["mountPath"], *_spellings(item["mountPath"], merged)}
        for place in sorted(places):
            fix = "use cluster.pvc, cluster.pvc_path, mounts or resources of the job"
            yield Kept((*_AT, "volumeMounts", place), fix)
    for item in base["spec"]["volumes"]:
        yield Kept(("spec", "volumes", item["name"]), "give the volume another name")
    for kind, amounts in container["resources"].items():
        for name in amounts:
            fix = "use resources of the job, or cluster.pod_resources"
            yield Kept((*_AT, "resources", kind, name), fix)


def _spellings(place: str, merged: Manifest) -> Iterator[str]:
    """Other ways in which the patched container writes a path, like ``/runs/``."""
    trial = _at(merged, _AT)
    for mount in maps_in(map_in(trial).get("volumeMounts")):
        if posixpath.normpath(str(mount["mountPath"])) == posixpath.normpath(place):
            yield str(mount["mountPath"])


def _at(value: Any, path: Path) -> object:
    """The value at a path; None where there is none."""
    before = ""
    for step in path:
        if isinstance(value, list):
            name = MERGE_KEYS[before]
            value = next((item for item in value if str(item.get(name)) == step), None)
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
        before = step
    return value


def _check_ends(base: Manifest, merged: Manifest) -> None:
    """Refuse further containers that would keep the pod alive after its trial has ended."""
    known = {item["name"] for item in base["spec"]["containers"]}
    for item in merged["spec"]["containers"]:
        if item["name"] not in known:
            raise UsageError(
                f"{_KEY}.spec.containers[{item['name']}] would keep the pod running after its trial",
                why="a pod ends when all its containers have ended",
                fix="write it under initContainers with restartPolicy: Always, which makes it a sidecar",
            )


def _confined(merged: Manifest, caller: Caller) -> Manifest:
    """The template whose further containers have a security context where they do not say otherwise.

    Raises:
        MergeError: what one of them says has another shape.
    """
    context, _ = security((), caller)
    context["readOnlyRootFilesystem"] = True
    spec = dict(map_in(merged.get("spec")))
    for kind in CONTAINERS:
        if not isinstance(spec.get(kind), list):
            continue
        containers = []
        for item in spec[kind]:
            at = ("spec", kind, str(item["name"]), "securityContext")
            own = merge(context, map_in(item.get("securityContext")), at)
            containers.append(item if item["name"] == TRIAL else {**item, "securityContext": own})
        spec[kind] = containers
    return {**merged, "spec": spec}


def _check_security(base: ApiObject, merged: ApiObject, settings: ClusterSettings) -> None:
    """Refuse what makes the pods less secure, but for what the job allows."""
    before = loosenings(base)
    allowed = settings.pod_patch_allow or ()
    found = [loose for loose in loosenings(merged) if loose not in before and loose.field not in allowed]
    if found:
        words = ", ".join(dict.fromkeys((*allowed, *(loose.field for loose in found))))
        raise UsageError(
            f"{_KEY} makes the pods less secure: {'; '.join(f'{_KEY}.{loose.text}' for loose in found)}",
            fix=f"leave that out, or allow it: cluster.pod_patch_allow: [{words}]",
        )
