"""Runs profrun with the real Nsight Systems on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, need_tool


def nsys() -> str:
    """The installed nsys: $PROFRUN_NSYS or the PATH."""
    return os.environ.get("PROFRUN_NSYS") or need_tool("nsys")


def submit(folder: Path, spec: str) -> tuple[int, dict[str, Any], Path]:
    """``profrun submit`` of a spec on the local backend: exit code, its JSON, the run's folder."""
    nsys()
    job = folder / "job.yaml"
    job.write_text(spec, encoding="utf-8")
    environ = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    code = "from profrun.cli import main; main()"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "submit",
            str(job),
            "--backend",
            "local",
            "--runs",
            str(folder / "runs"),
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environ,
        timeout=240,
    )
    runs = sorted((folder / "runs").iterdir())
    assert len(runs) == 1, done.stderr
    return done.returncode, json.loads(done.stdout), runs[0]
