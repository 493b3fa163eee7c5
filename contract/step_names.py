"""Names of the ranges that are steps: what emits them, every reader and the analysis take them from here."""

from __future__ import annotations

import re

from .steps import RUN_RANGE

OWN_STEP = "profrun.step#"
"""Beginning of the name of a step range of profrun's hook; the step's number follows."""

TORCH_STEP = "ProfilerStep#"
"""The same for torch.profiler."""

FAMILIES = (
    rf"^{re.escape(RUN_RANGE)}$",
    rf"^{re.escape(OWN_STEP)}(\d+)$",
    rf"^{re.escape(TORCH_STEP)}(\d+)$",
    r"^[Ss]tep[ #]?(\d+)$",
)
"""Patterns of the names, in order of preference: all steps of a process have names of one family. The group,
where there is one, is the step's number. Python, RE2 and DuckDB read them alike."""

ANY_STEP = "|".join(FAMILIES)
"""Pattern of the name of any step."""
