"""The installed nsys knows every flag that profrun gives it."""

from __future__ import annotations

import os
import subprocess

import pytest

from profrun.collectors.nsys.wrap import wrap
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest
from tests.conftest import need_tool

pytestmark = pytest.mark.nsys
OPTIONS = {"duration": 5, "delay": 1, "capture": "all", "gpu_metrics_frequency": 10, "gpu_metrics": "0"}


def test_the_real_nsys_knows_every_flag() -> None:
    tool = os.environ.get("PROFRUN_NSYS") or need_tool("nsys")
    text = subprocess.run([tool, "profile", "--help"], capture_output=True, text=True, check=False).stdout
    words: list[str] = []
    for options in ({}, OPTIONS, {"python_sampling": True}):
        request = WrapRequest(
            argv=("python", "train.py"),
            schedule=Schedule(),
            options=options,
            out="/run/raw/rank0",
            tool="/usr/bin/nsys",
            version=(2024, 2, 3),
            vendor="nvidia",
        )
        words += wrap(request).argv
    flags = {word.split("=")[0] for word in words if word.startswith("--")}
    assert not [flag for flag in sorted(flags) if flag + "=" not in text]
