"""What the API server's refusals mean to a person. Pure.

Codes: kubernetes.io/docs/reference/kubernetes-api/common-definitions/status. Each error carries the HTTP
``status`` that it stands for.
"""

from __future__ import annotations

import re

from profrun.backends.kubernetes.objects import ApiObject
from profrun.backends.privileges import who_needs
from profrun.errors import ProfrunError, UnavailableError, UsageError

_POD_SECURITY = re.compile(r"violates PodSecurity|pod ?security|securitycontextconstraint", re.IGNORECASE)
_POD_NAME = re.compile(r'pods? "[^"]+"')
_CAPABILITY = re.compile(r"capabilit|runAsNonRoot|runAsUser", re.IGNORECASE)


class Gone(UnavailableError):
    """The version to watch from is no longer kept: list again."""

    status = 410


class Refused(UnavailableError):
    """The server answered, and said no."""

    def __init__(self, status: int, what: str, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what, why=why, fix=fix)
        self.status = status


class Wrong(UsageError):
    """The server says that the request itself is wrong."""

    def __init__(self, status: int, what: str, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what, why=why, fix=fix)
        self.status = status


def http_status(error: ProfrunError) -> int | None:
    """The status that the server answered with; None when it could not be asked."""
    return error.status if isinstance(error, (Gone, Refused, Wrong)) else None


def unreachable(why: str) -> UnavailableError:
    """The server could not be asked."""
    return UnavailableError(
        "the Kubernetes API server cannot be reached", why=why, fix="`kubectl cluster-info`"
    )


def refused(status: int, told: ApiObject, doing: str) -> ProfrunError:
    """The error behind an HTTP status.

    Args:
        told: the server's Status object: ``message``, ``reason``.
        doing: method and path, for the person who must look further.
    """
    said = " ".join(str(told.get("message") or told.get("reason") or "it said nothing").split())
    if status == 401:
        return Refused(
            status, "the Kubernetes API server does not know you", said, "log in to the cluster again"
        )
    if status == 403:
        return Refused(status, *_forbidden(said, doing))
    if status == 404:
        return Wrong(status, f"the cluster does not have it: {said}", None, "check cluster.namespace")
    if status == 409:
        return Wrong(status, "an object of this name is there and is not this run's", said)
    if status == 410:
        return Gone("the watch is too old", why=said)
    if status in (400, 413, 422):
        return Wrong(
            status, "the Kubernetes API server refused the job", said, "check the job's cluster block"
        )
    if status == 429:
        return Refused(status, "the Kubernetes API server is busy and refuses more requests", said)
    return Refused(status, f"the Kubernetes API server answered {status} to {doing}", said)


def _forbidden(said: str, doing: str) -> tuple[str, str, str]:
    """What, why, fix of a 403: a policy about pods, a quota, or a missing right."""
    if _POD_SECURITY.search(said):
        return pod_security(said)
    if "exceeded quota" in said:
        return (
            "the namespace's quota does not allow it",
            said,
            "ask for less, or wait for other jobs to end",
        )
    return (
        "your account may not do this on the cluster",
        f"{said} ({doing})",
        "docs/kubernetes.md lists the rights it needs",
    )


def pod_security(said: str) -> tuple[str, str, str]:
    """What, why, fix where the namespace's Pod Security level does not allow the pod."""
    fix = "use a namespace of a lower Pod Security level"
    if _CAPABILITY.search(said):
        fix = (
            f"only {who_needs()}, and cluster.ipc_lock, ask for a capability: leave those out, or use a "
            "namespace with pod-security.kubernetes.io/enforce=privileged"
        )
    return "Pod Security does not allow the pod", said, fix


def awaited_pod(message: str) -> str:
    """A FailedCreate event in words where waiting may help. Each try has another pod name, which is left out:
    the reason would seem to change with each of them."""
    said = " ".join(message.split())
    return f"the pod cannot be made yet: {_POD_NAME.sub('the pod', said)}"


def forbidden_pod(message: str) -> str | None:
    """A FailedCreate event in words when waiting does not help; None when it may pass (a quota)."""
    said = " ".join(message.split())
    if _POD_SECURITY.search(said):
        what, why, fix = pod_security(said)
        return f"{what}: {why}; {fix}"
    if "exceeded quota" in said or "timeout" in said or "try again" in said:
        return None
    if "is forbidden" in said or "is invalid" in said or "not found" in said:
        return f"Kubernetes cannot make the pod: {said}"
    return None
