"""A caller of the container engine, after whom nothing is left there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.containers import (
    CALLER_GID,
    CALLER_UID,
    STANDIN,
    Cli,
    cuda,
    engine,
    import_empty,
    kind,
    own,
    standin,
    until,
)

__all__ = [
    "CALLER_GID",
    "CALLER_UID",
    "STANDIN",
    "Cli",
    "cuda",
    "engine",
    "import_empty",
    "kind",
    "own",
    "standin",
    "until",
]


@pytest.fixture
def cli(tmp_path: Path, engine: Any) -> Iterator[Cli]:
    """A caller with a folder of their own. After every test no container of theirs is there any more."""
    folder = tmp_path / "home"
    folder.mkdir()
    own(folder)
    yield Cli(folder)
    until(lambda: not containers_of(engine, folder), "the end of the last container", 5.0)


def containers_of(engine: Any, folder: Path) -> list[Any]:
    """Containers of ours whose trial lies below a folder."""
    return [
        item
        for item in engine.api.containers(all=True, filters={"label": "profrun.role"})
        if str(item["Labels"].get("profrun.path", "")).startswith(str(folder))
    ]
