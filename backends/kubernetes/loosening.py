"""By which fields a pod's template is less secure than the Pod Security level ``restricted`` and than what
profrun sets. Pure.

kubernetes.io/docs/concepts/security/pod-security-standards. Tokens of the cluster are looked for, too.
A value of another shape than Kubernetes has there loosens nothing: the API server refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from profrun.backends.kubernetes.objects import ApiObject
from profrun.backends.kubernetes.strategic_merge import Path, path_text
from profrun.jobs.cluster import Loosening

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_HOST: tuple[Loosening, ...] = ("hostNetwork", "hostPID", "hostIPC")


@dataclass(frozen=True)
class Loose:
    """One field that makes a pod less secure.

    Attributes:
        field: its name, by which a job allows it.
        path: where it is, or where it is missing.
        value: what it is; None where it is missing and its default is less secure.
    """

    field: Loosening
    path: Path
    value: object

    @property
    def text(self) -> str:
        """``spec.hostNetwork is true``."""
        if self.value is None:
            return f"{path_text(self.path)} is missing"
        said = ", ".join(map(str, self.value)) if isinstance(self.value, list) else str(self.value)
        said = said.lower() if isinstance(self.value, bool) else said
        return f"{path_text(self.path)} is {said}"


def loosenings(template: ApiObject) -> list[Loose]:
    """All of a template, in order."""
    spec = template["spec"]
    found = [*_of_annotations(template), *_of_pod(spec), *_of_volumes(spec)]
    for kind in CONTAINERS:
        for container in maps_in(spec.get(kind)):
            found += _of_container(container, ("spec", kind, str(container["name"])))
    return found


def _of_annotations(template: ApiObject) -> Iterator[Loose]:
    for name, value in map_in(map_in(template.get("metadata")).get("annotations")).items():
        if name.startswith(_APPARMOR) and value == "unconfined":
            yield Loose("appArmorProfile", ("metadata", "annotations", name), value)


def _of_pod(spec: ApiObject) -> Iterator[Loose]:
    for field in _HOST:
        if spec.get(field):
            yield Loose(field, ("spec", field), True)
    if spec.get("automountServiceAccountToken") is not False:
        value = spec.get("automountServiceAccountToken")
        yield Loose("automountServiceAccountToken", ("spec", "automountServiceAccountToken"), value)
    context, at = map_in(spec.get("securityContext")), ("spec", "securityContext")
    if context.get("runAsNonRoot") is False:  # where it is missing, each container says it
        yield Loose("runAsNonRoot", (*at, "runAsNonRoot"), False)
    yield from _of_root(context, at)
    yield from _of_modules(context, at)
    if map_in(context.get("seccompProfile")).get("type") == "Unconfined":
        yield Loose("seccompProfile", (*at, "seccompProfile", "type"), "Unconfined")
    sysctls = [str(item.get("name")) for item in maps_in(context.get("sysctls"))]
    if sysctls:
        yield Loose("sysctls", (*at, "sysctls"), ", ".join(sysctls))


def _of_volumes(spec: ApiObject) -> Iterator[Loose]:
    for volume in maps_in(spec.get("volumes")):
        at = ("spec", "volumes", str(volume["name"]))
        if "hostPath" in volume:
            yield Loose("hostPath", (*at, "hostPath"), map_in(volume["hostPath"]).get("path"))
        for source in maps_in(map_in(volume.get("projected")).get("sources")):
            if "serviceAccountToken" in source:
                yield Loose("serviceAccountToken", (*at, "projected", "sources"), "a token of the cluster")


def _of_container(container: ApiObject, at: Path) -> Iterator[Loose]:
    for port in maps_in(container.get("ports")):
        if port.get("hostPort"):
            where = (*at, "ports", str(port.get("containerPort")), "hostPort")
            yield Loose("hostPort", where, port["hostPort"])
    context, at = map_in(container.get("securityContext")), (*at, "securityContext")
    if context.get("privileged"):
        yield Loose("privileged", (*at, "privileged"), True)
    wanted: tuple[tuple[Loosening, bool], ...] = (
        ("allowPrivilegeEscalation", False),
        ("readOnlyRootFilesystem", True),
        ("runAsNonRoot", True),
    )
    for field, value in wanted:
        if context.get(field) is not value:
            yield Loose(field, (*at, field), context.get(field))
    yield from _of_root(context, at)
    yield from _of_modules(context, at)
    yield from _of_capabilities(map_in(context.get("capabilities")), (*at, "capabilities"))
    profile = map_in(context.get("seccompProfile")).get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        yield Loose("seccompProfile", (*at, "seccompProfile", "type"), profile)
    if context.get("procMount") not in (None, "Default"):
        yield Loose("procMount", (*at, "procMount"), context["procMount"])


def _of_root(context: Mapping[str, Any], at: Path) -> Iterator[Loose]:
    if context.get("runAsUser") == 0:
        yield Loose("runAsUser", (*at, "runAsUser"), 0)


def _of_modules(context: Mapping[str, Any], at: Path) -> Iterator[Loose]:
    """Security modules of the kernel."""
    if map_in(context.get("appArmorProfile")).get("type") == "Unconfined":
        yield Loose("appArmorProfile", (*at, "appArmorProfile", "type"), "Unconfined")
    if context.get("seLinuxOptions"):
        yield Loose("seLinuxOptions", (*at, "seLinuxOptions"), context["seLinuxOptions"])


def _of_capabilities(capabilities: Mapping[str, Any], at: Path) -> Iterator[Loose]:
    dropped, added = capabilities.get("drop"), capabilities.get("add")
    if not isinstance(dropped, list) or "ALL" not in dropped:
        yield Loose("capabilities", (*at, "drop"), dropped)
    if added:
        yield Loose("capabilities", (*at, "add"), added)


def map_in(value: object) -> Mapping[str, Any]:
    """A mapping; empty where the value is none."""
    return value if isinstance(value, Mapping) else {}


def maps_in(value: object) -> list[Mapping[str, Any]]:
    """The mappings of a list; none where the value is none."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
