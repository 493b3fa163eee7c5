"""A folder that stands for the root of a machine."""

from __future__ import annotations

from pathlib import Path


def fake_root(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root
