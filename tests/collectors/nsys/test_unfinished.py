"""Which streams of nsys are imported, by which importer, and with which command."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.collectors.nsys.unfinished import find_importer, imports
from profrun.contract.wrapping import Import


def installed(root: Path) -> tuple[str, Path]:
    """nsys and its importer in one tree, as NVIDIA installs them; returns both paths."""
    tool, importer = root / "target-linux-x64/nsys", root / "host-linux-x64/QdstrmImporter"
    for path in (tool, importer):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return str(tool), importer


def test_a_stream_is_imported_into_a_file_of_its_own(tmp_path: Path) -> None:
    tool, importer = installed(tmp_path / "nsys")
    raw = tmp_path / "raw"
    raw.mkdir()
    for name in ("done.nsys-rep", "left.qdstrm", "left.nsys-rep", "steps.json"):
        (raw / name).write_text("x")
    stem, home = f"{raw}/left", f"{tmp_path}/nsys"
    argv = (str(importer), "-i", f"{stem}.qdstrm", "-o", f"{stem}.part.nsys-rep")
    paths = (raw / "left.qdstrm", raw / "left.part.nsys-rep", raw / "left.nsys-rep")
    assert imports(raw, tool) == (Import(argv, *paths, (f"{home}/host-linux-x64", f"{home}/lib")),)


def test_the_importer_is_found_behind_a_link_and_first_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, importer = installed(tmp_path / "nsys")
    link = tmp_path / "bin/nsys"
    link.parent.mkdir()
    link.symlink_to(tool)
    assert find_importer(str(link)) == importer
    other = tmp_path / "bin/QdstrmImporter"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_importer(str(link)) == other


def test_without_an_importer_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profrun.collectors.nsys.unfinished._DEBIAN", tmp_path / "none")
    (tmp_path / "left.qdstrm").write_text("x")
    assert imports(tmp_path, str(tmp_path / "a/b/c/nsys")) == ()


@pytest.mark.parametrize(("own", "expected"), [({}, "/i:/lib"), ({"LD_LIBRARY_PATH": "/o"}, "/i:/lib:/o")])
def test_the_importers_own_libraries_come_first(own: dict[str, str], expected: str) -> None:
    command = Import(("x",), Path("a"), Path("b"), Path("c"), ("/i", "/lib"))
    assert command.environment(own)["LD_LIBRARY_PATH"] == expected
