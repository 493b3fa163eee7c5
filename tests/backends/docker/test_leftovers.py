"""Containers that nobody drives any more."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from profrun.backends.docker.leftovers import clear_dead


def item(name: str, state: str, created: object) -> dict[str, Any]:
    """A container as the engine lists it."""
    return {"Id": name, "State": state, "Created": created, "Labels": {"profrun.run": "r"}}


@pytest.mark.parametrize(
    ("state", "age_s", "removed"),
    [
        ("exited", 0, True),
        ("dead", 0, True),
        ("running", 999, False),
        ("created", 0, False),
        ("created", 999, True),
    ],
)
def test_what_is_removed(state: str, age_s: int, removed: bool) -> None:
    gone: list[str] = []
    api = SimpleNamespace(
        containers=lambda **_: [item("c1", state, time.time() - age_s)],
        remove_container=lambda name, **_: gone.append(name),
    )
    found = clear_dead(cast("Any", SimpleNamespace(api=api)))
    assert gone == [one.id for one in found] == (["c1"] if removed else [])
    assert {one.run for one in found} <= {"r"}
