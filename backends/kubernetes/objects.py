"""Objects of the Kubernetes API as JSON, and where a trial's pods are (``PodHandle``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profrun.contract.codec import from_json, to_json
from profrun.store.events import Handle

ApiObject = Mapping[str, Any]
"""An object as the API server gives it. Fields: kubernetes.io/docs/reference/kubernetes-api."""
Manifest = dict[str, Any]
"""An object, or a part of one, that is asked for."""
TRIAL = "trial"
"""Name of the container in which a trial runs."""


def name_of(item: ApiObject) -> str:
    """An object's name."""
    return str(item["metadata"].get("name") or "")


def status_part(item: ApiObject) -> ApiObject:
    """What an object says of its state; empty while it says nothing."""
    found: ApiObject = item.get("status") or {}
    return found


@dataclass(frozen=True)
class PodHandle:
    """Where the pods of one trial are.

    Attributes:
        job: name of the Job.
        index: completion index of the trial in the Job; 0 for a trial of several nodes, which has them all.
        nodes: pods of the trial.
        context, namespace: of the Job; None: the current ones.
        room_s: seconds that its profilers need after the grace.
        site: of the cluster block.
        note: what a person should know of how it was started.
    """

    job: str
    index: int
    nodes: int = 1
    context: str | None = None
    namespace: str | None = None
    room_s: float = 60.0
    site: str | None = None
    note: str | None = None

    @classmethod
    def of(cls, handle: Handle) -> PodHandle | None:
        """From what the log keeps; None when nothing was kept, because the driver was killed before."""
        return from_json(cls, handle.data) if handle.data.get("job") else None

    @property
    def handle(self) -> Handle:
        """As the log keeps it."""
        return Handle("kubernetes", to_json(self))

    @property
    def indexes(self) -> list[int]:
        """Completion indexes of all its pods."""
        return list(range(self.nodes)) if self.nodes > 1 else [self.index]
