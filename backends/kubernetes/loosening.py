"""By which fields a pod's template is less secure than the Pod Security level ``restricted`` and than what
profrun sets. Pure.

kubernetes.io/docs/concepts/security/pod-security-standards. Tokens of the cluster are looked for, too.
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
        said = str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
        return f"{path_text(self.path)} is {said}"


def loosenings(template: ApiObject) -> list[Loose]:
    """All of a template, in order."""
    spec = template["spec"]
    found = [*_of_annotations(template), *_of_pod(spec), *_of_volumes(spec)]
    for kind in CONTAINERS:
        for container in spec.get(kind) or ():
            found += _of_container(container, ("spec", kind, str(container["name"])))
    return found


def _of_annotations(template: ApiObject) -> Iterator[Loose]:
    for name, value in ((template.get("metadata") or {}).get("annotations") or {}).items():
        if name.startswith(_APPARMOR) and value == "unconfined":
            yield Loose("appArmorProfile", ("metadata", "annotations", name), value)


def _of_pod(spec: ApiObject) -> Iterator[Loose]:
    for field in _HOST:
        if spec.get(field):
            yield Loose(field, ("spec", field), True)
    if spec.get("automountServiceAccountToken") is not False:
        value = spec.get("automountServiceAccountToken")
        yield Loose("automountServiceAccountToken", ("spec", "automountServiceAccountToken"), value)
    context, at = spec.get("securityContext") or {}, ("spec", "securityContext")
    if context.get("runAsNonRoot") is False:  # where it is missing, each container says it
        yield Loose("runAsNonRoot", (*at, "runAsNonRoot"), False)
    yield from _of_root(context, at)
    yield from _of_modules(context, at)
    if (context.get("seccompProfile") or {}).get("type") == "Unconfined":
        yield Loose("seccompProfile", (*at, "seccompProfile", "type"), "Unconfined")
    if context.get("sysctls"):
        yield Loose(
            "sysctls", (*at, "sysctls"), ", ".join(str(item.get("name")) for item in context["sysctls"])
        )


def _of_volumes(spec: ApiObject) -> Iterator[Loose]:
    for volume in spec.get("volumes") or ():
        at = ("spec", "volumes", str(volume["name"]))
        if "hostPath" in volume:
            yield Loose("hostPath", (*at, "hostPath"), (volume["hostPath"] or {}).get("path"))
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                yield Loose("serviceAccountToken", (*at, "projected", "sources"), "a token of the cluster")


def _of_container(container: ApiObject, at: Path) -> Iterator[Loose]:
    for port in container.get("ports") or ():
        if port.get("hostPort"):
            where = (*at, "ports", str(port.get("containerPort")), "hostPort")
            yield Loose("hostPort", where, port["hostPort"])
    context, at = container.get("securityContext") or {}, (*at, "securityContext")
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
    yield from _of_capabilities(context.get("capabilities") or {}, (*at, "capabilities"))
    profile = (context.get("seccompProfile") or {}).get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        yield Loose("seccompProfile", (*at, "seccompProfile", "type"), profile)
    if context.get("procMount") not in (None, "Default"):
        yield Loose("procMount", (*at, "procMount"), context["procMount"])


def _of_root(context: Mapping[str, Any], at: Path) -> Iterator[Loose]:
    if context.get("runAsUser") == 0:
        yield Loose("runAsUser", (*at, "runAsUser"), 0)


def _of_modules(context: Mapping[str, Any], at: Path) -> Iterator[Loose]:
    """Security modules of the kernel."""
    if (context.get("appArmorProfile") or {}).get("type") == "Unconfined":
        yield Loose("appArmorProfile", (*at, "appArmorProfile", "type"), "Unconfined")
    if context.get("seLinuxOptions"):
        yield Loose("seLinuxOptions", (*at, "seLinuxOptions"), dict(context["seLinuxOptions"]))


def _of_capabilities(capabilities: Mapping[str, Any], at: Path) -> Iterator[Loose]:
    if "ALL" not in (capabilities.get("drop") or ()):
        yield Loose("capabilities", (*at, "drop"), capabilities.get("drop"))
    if capabilities.get("add"):
        yield Loose("capabilities", (*at, "add"), ", ".join(map(str, capabilities["add"])))
