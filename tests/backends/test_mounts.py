"""The job's mounts as paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.backends.mounts import Mount, need_sources, parse_mount
from profrun.errors import UnavailableError


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("data:/data", Mount("/work/data", "/data", False)),
        ("data:/data:rw", Mount("/work/data", "/data", False)),
        ("../data:/data/:ro", Mount("/data", "/data", True)),
        ("/scratch:/", Mount("/scratch", "/", False)),
        ("~/x:/x", Mount("/home/ada/x", "/x", False)),
    ],
)
def test_a_mount(monkeypatch: pytest.MonkeyPatch, text: str, mount: Mount) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert parse_mount(text, Path("/work")) == mount


def test_a_source_that_is_not_there_is_said(tmp_path: Path) -> None:
    need_sources([Mount(str(tmp_path), "/x", False)])
    with pytest.raises(UnavailableError, match="no is to be mounted at /y, and it does not exist"):
        need_sources([Mount(str(tmp_path), "/x", False), Mount(str(tmp_path / "no"), "/y", True)])
