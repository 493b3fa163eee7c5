"""What is refused before anything is made."""

from __future__ import annotations

import pytest

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.checks import check_queue, check_site
from profrun.errors import UnavailableError, UsageError
from profrun.jobs.cluster import ClusterSettings
from tests.backends.kubernetes.server import Fault, Server

KUEUE = {"kind": "APIGroup", "name": "kueue.x-k8s.io", "preferredVersion": {"version": "v1beta2"}}


def answers(server: Server, group: int, queue: int | None = None) -> None:
    """What the cluster says when it is asked for Kueue and for the queue."""
    server.faults = [Fault("GET", r"/apis/kueue\.x-k8s\.io$", group, KUEUE if group == 200 else "")]
    if queue is not None:
        path = r"/apis/kueue\.x-k8s\.io/v1beta2/namespaces/team/localqueues/gpus$"
        server.faults.append(Fault("GET", path, queue, {"metadata": {"name": "gpus"}}))


def test_a_queue_without_kueue_is_refused(server: Server, api: Api) -> None:
    answers(server, 404)
    with pytest.raises(UsageError, match=r"the queue 'gpus', and the cluster has no Kueue: .*leave out"):
        check_queue(api, "gpus")


def test_a_queue_that_is_not_there_is_refused(server: Server, api: Api) -> None:
    answers(server, 200, 404)
    with pytest.raises(UsageError, match=r"namespace team has no Kueue LocalQueue 'gpus'.*get localqueues"):
        check_queue(api, "gpus")


@pytest.mark.parametrize(("group", "queue"), [(403, None), (200, 403), (200, 200)])
def test_who_may_not_look_at_queues_may_submit(
    server: Server, api: Api, group: int, queue: int | None
) -> None:
    answers(server, group, queue)
    check_queue(api, "gpus")
    assert server.faults == []  # it was asked


def test_a_server_that_cannot_be_asked_is_no_missing_queue(server: Server, api: Api) -> None:
    answers(server, 500)
    server.faults *= 5
    with pytest.raises(UnavailableError):
        check_queue(api, "gpus")


def test_the_claim_is_looked_at_first_and_a_queue_only_where_one_is_named(server: Server, api: Api) -> None:
    with pytest.raises(UsageError, match="no persistent volume claim 'runs'"):
        check_site(api, ClusterSettings(pvc="runs", queue="gpus"))
    server.put("persistentvolumeclaims", {"metadata": {"name": "runs"}}, "ADDED")
    check_site(api, ClusterSettings(pvc="runs"))
    assert server.asked("GET", "kueue") == 0
