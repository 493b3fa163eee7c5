"""Declared options: what a job may give a profiler, and that the profiler does something with it."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest

from profrun.contract.options import ToolOptions
from profrun.contract.profilers import Profiler, built_in

WITH_TOOL = [found for found in built_in() if found.tools]


@pytest.mark.parametrize("found", built_in(), ids=lambda found: found.name)
def test_no_option_is_set_unless_a_job_gives_it(found: Profiler) -> None:
    assert all(item.default is None and item.metadata["doc"] for item in dataclasses.fields(found.options))


@pytest.mark.parametrize("found", WITH_TOOL, ids=lambda found: found.name)
def test_wrap_reads_every_option_of_a_profiler_with_an_executable(found: Profiler) -> None:
    """``path`` and ``version`` are for whoever looks for the executable."""
    assert issubclass(found.options, ToolOptions)
    source = inspect.getsource(found.part("wrap"))
    read = set(re.findall(r"\boptions\.([a-z_]+)", source))
    assert {item.name for item in dataclasses.fields(found.options)} - {"path", "version"} == read
