"""Where a profiler's executable is found, and what its version is."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from profrun.contract.profilers import profiler
from profrun.in_job import tools


def program(path: Path, says: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_jobs_path_then_the_variable_then_the_path_then_the_newest_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("PROFRUN_NSYS", raising=False)
    places = (str(tmp_path / "nsight/*/bin"),)
    program(tmp_path / "nsight/2023.10/bin/nsys", "old")
    newest = program(tmp_path / "nsight/2024.2/bin/nsys", "new")
    assert tools.find("nsys", places) == newest
    monkeypatch.setenv("PATH", str(Path(on_path := program(tmp_path / "bin/nsys", "path")).parent))
    assert tools.find("nsys", places) == on_path
    monkeypatch.setenv("PROFRUN_NSYS", named := program(tmp_path / "own/nsys", "named"))
    assert tools.find("nsys", places) == named
    given = program(tmp_path / "given", "NVIDIA Nsight Systems version 2024.2.3.38-242334140272v0")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert tools.find_tool(profiler("nsys"), given) == tools.Tool("nsys", given, (2024, 2, 3))


def test_what_is_not_there_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find", lambda *_: None)
    found = tools.find_tool(profiler("ncu"), where="on this machine")
    assert found.problem is not None
    assert (found.path, found.problem.code) == (None, "tool-missing")
    assert found.problem.what == "ncu is not on this machine"
    given = tools.find_tool(profiler("ncu"), "/no/ncu").problem
    assert given is not None
    assert given.what == "there is no ncu at /no/ncu in this image"
    assert tools.find_tool(profiler("torch")) == tools.Tool()


def test_rocprof_is_known_by_the_version_of_rocm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    stated = program(tmp_path / "a/bin/rocprofv3", "version: 0.6.0 rocm_version: 6.4.1")
    assert tools.find_tool(profiler("rocprof"), stated).version == (6, 4, 1)
    beside = program(tmp_path / "b/bin/rocprofv3", "no version")
    (tmp_path / "b/.info").mkdir()
    (tmp_path / "b/.info/version").write_text("6.2.0-66\n")
    assert tools.find_tool(profiler("rocprof"), beside).version == (6, 2, 0)
