"""Waiting for pods: a watch that breaks off goes on, and has an end."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.ending import until
from profrun.backends.kubernetes.refusals import Gone
from tests.backends.kubernetes.server import Fault, Server


def pod(name: str, phase: str = "Running") -> dict[str, Any]:
    """A pod as the server keeps it."""
    return {"metadata": {"name": name, "labels": {"a": "b"}}, "status": {"phase": phase}}


def test_a_watch_goes_on_after_it_was_dropped(server: Server, api: Api) -> None:
    server.put("pods", pod("one"), "ADDED")
    server.faults = [Fault("GET", "watch=true", "drop"), Fault("GET", "watch=true", 500)]
    seen: list[set[str]] = []

    def done(pods: Any) -> bool:
        if not seen:
            server.put("pods", pod("two"), "ADDED")
        seen.append(set(pods))
        return "two" in pods

    assert until(api, "a=b", done, 10)
    assert server.asked("GET", "watch=true") == 3
    assert server.asked("GET", r"/pods\?labelSelector=a%3Db$") == 1  # not listed again


def test_a_stream_that_breaks_off_goes_on_from_the_last_version(server: Server, api: Api) -> None:
    listed: list[dict[str, Any]] = []

    def done(pods: Any) -> bool:
        if not listed:
            listed.append({})
            server.put("pods", pod("one"), "ADDED")
            server.put("pods", pod("two"), "ADDED")
        return "two" in pods

    server.faults = [Fault("GET", "watch=true", "cut")]
    assert until(api, "a=b", done, 10)
    first, second = [path for method, path, _ in server.requests if "watch=true" in path]
    assert "resourceVersion=100&" in first
    assert "resourceVersion=101&" in second


def test_a_watch_that_is_too_old_starts_from_a_list(server: Server, api: Api) -> None:
    def done(pods: Any) -> bool:
        if server.oldest:
            return True
        server.oldest = 200
        return False

    server.oldest = 200
    with pytest.raises(Gone):
        list(api.watch_pods("a=b", "1", 1))
    server.oldest = 0
    assert until(api, "a=b", done, 10)
    assert server.asked("GET", r"/pods\?labelSelector=a%3Db$") == 2


def test_a_watch_answered_with_410_starts_from_a_list(server: Server, api: Api) -> None:
    server.faults = [Fault("GET", "watch=true", 410, {"message": "too old resource version"})]
    calls: list[int] = []

    def done(pods: Any) -> bool:
        calls.append(1)
        return len(calls) == 2

    assert until(api, "a=b", done, 10)
    assert server.asked("GET", r"/pods\?labelSelector=a%3Db$") == 2


def test_waiting_has_an_end(server: Server, api: Api) -> None:
    assert not until(api, "a=b", lambda pods: False, 0.3)
