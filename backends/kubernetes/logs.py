"""A pod's own log: what the script said before the wrapper, and the wrapper's copy of the output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.objects import ApiObject, PodHandle, name_of, status_part
from profrun.backends.kubernetes.states import newest_pods
from profrun.errors import ProfrunError

_PAUSE_S = 0.5


def pod_lines(
    api: Api, selector: str, handle: PodHandle, *, follow: bool, ended: Callable[[], bool]
) -> Iterator[str]:
    """Lines of the trial's first pod; with ``follow`` from its start to the trial's end.

    A stream that breaks off goes on behind the last line that was seen: time stamps say which that was.
    """
    key = (handle.job, handle.indexes[0])
    seen = ""
    while True:
        over = not follow or ended()
        pod = newest_pods(api.pods(selector)[0]).get(key)
        if pod is not None and _has_log(pod):
            try:
                for line in api.log(name_of(pod), follow=follow and not over, since=seen):
                    stamp, _, text = line.partition(" ")
                    if stamp > seen:
                        seen = stamp
                        yield text
            except ProfrunError:
                if over:
                    raise
        if over:
            return
        time.sleep(_PAUSE_S)


def last_line_of_log(api: Api, pod: str) -> str | None:
    """The last line of a pod's log; None when there is none to be had."""
    try:
        lines = [line.partition(" ")[2].strip() for line in api.log(pod, tail=5)]
    except ProfrunError:
        return None
    written = [line for line in lines if line]
    return written[-1][:200] if written else None


def _has_log(pod: ApiObject) -> bool:
    """Has its container started?"""
    states = status_part(pod).get("containerStatuses") or ()
    return any("waiting" not in (state.get("state") or {"waiting": {}}) for state in states)
