"""Containers of profrun that no process drives any more: finding them by their label, and removing them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from profrun.backends.docker.request import LABEL_PATH, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL
from profrun.images.engine import docker_errors

if TYPE_CHECKING:
    from collections.abc import Collection

    import docker

_YOUNG_S = 60.0
"""A container that was created but not started this long ago may still be about to start."""


@dataclass(frozen=True)
class Leftover:
    """A container of profrun as the engine lists it."""

    id: str
    status: str
    run: str
    trial: str
    path: str
    created: float


def our_containers(client: docker.DockerClient) -> list[Leftover]:
    """Every container that profrun started on this engine, running or not.

    Raises:
        UnavailableError: the engine does not answer.
    """
    with docker_errors("the engine's containers cannot be listed"):
        found = client.api.containers(all=True, filters={"label": LABEL_ROLE})
    return [
        Leftover(
            id=str(item["Id"]),
            status=str(item.get("State") or ""),
            run=str(item["Labels"].get(LABEL_RUN, "")),
            trial=str(item["Labels"].get(LABEL_TRIAL, "")),
            path=str(item["Labels"].get(LABEL_PATH, "")),
            created=_unix(item.get("Created")),
        )
        for item in found
    ]


def clear_dead(client: docker.DockerClient) -> list[Leftover]:
    """Remove containers of profrun that ended, or were created and never started; returns them.

    Running ones stay: their run is driven, or can be resumed or cancelled.
    """
    gone = []
    for item in our_containers(client):
        if item.status in ("exited", "dead") or (
            item.status == "created" and time.time() - item.created > _YOUNG_S
        ):
            remove(client, item.id)
            gone.append(item)
    return gone


def end_running(client: docker.DockerClient, folders: Collection[str]) -> list[Leftover]:
    """End and remove the containers of some trials that run, though the trials are over; returns them.

    Args:
        folders: of the trials.

    Raises:
        UnavailableError: the engine does not answer.
    """
    left = [item for item in our_containers(client) if item.path in folders]
    running = [item for item in left if item.status in ("running", "paused", "restarting")]
    for item in running:
        remove(client, item.id)
    return running


def remove(client: docker.DockerClient, name: str) -> None:
    """Remove a container by name or id, running or not; nothing happens when there is none.

    Raises:
        FailedError: the engine cannot.
    """
    import docker.errors

    with docker_errors(f"container {name} cannot be removed"):
        try:
            client.api.remove_container(name, force=True, v=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if error.response is None or error.response.status_code != 409:  # 409: being removed already
                raise


def _unix(value: object) -> float:
    """Creation time in seconds: Docker gives a number, Podman may give a date."""
    if isinstance(value, (int, float)):
        return float(value)
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(str(value)).timestamp()
    return 0.0
