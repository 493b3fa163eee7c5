"""What a cluster must have before anything is made: without it the pods would wait without end."""

from __future__ import annotations

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.pod_paths import claim
from profrun.backends.kubernetes.refusals import http_status
from profrun.errors import ProfrunError, UsageError
from profrun.jobs.cluster import ClusterSettings


def check_site(api: Api, settings: ClusterSettings) -> None:
    """The claim and the queue of the cluster block. What the account may not look at is taken as it is.

    Raises:
        UsageError: one of them is not there.
        UnavailableError: the API server cannot be asked.
    """
    check_claim(api, claim(settings))
    if settings.queue:
        check_queue(api, settings.queue)


def check_claim(api: Api, name: str) -> None:
    """A claim that is not there would leave the pods waiting without end."""
    try:
        api.claim(name)
    except ProfrunError as error:
        if http_status(error) == 403:  # not everybody may look at claims
            return
        if http_status(error) == 404:
            raise UsageError(
                f"namespace {api.namespace} has no persistent volume claim {name!r}",
                fix="check cluster.pvc and cluster.namespace",
            ) from None
        raise


def check_queue(api: Api, name: str) -> None:
    """A Job whose queue is not there, or without Kueue, stays suspended."""
    try:
        found = api.local_queue(name)
    except ProfrunError as error:
        if http_status(error) == 403:
            return
        if http_status(error) == 404:
            raise UsageError(
                f"namespace {api.namespace} has no Kueue LocalQueue {name!r}",
                why="a Job of a queue that is not there is never started",
                fix=f"`kubectl get localqueues -n {api.namespace}` lists them; check cluster.queue and "
                "cluster.namespace",
            ) from None
        raise
    if found is None:
        raise UsageError(
            f"the job names the queue {name!r}, and the cluster has no Kueue",
            why="it does not serve kueue.x-k8s.io, and only Kueue starts the Jobs of a queue",
            fix="leave out cluster.queue, or ask for Kueue to be installed",
        )
