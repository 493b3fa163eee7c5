"""Names of the ranges that mark captures of CUDA graphs in a mapping, and of those round replays."""

from __future__ import annotations

import re

CAPTURE, CAPTURED, REPLAY = "profrun.capture ", "profrun.captured ", "profrun.graph "
"""Beginnings of the names; the number of the graph in its process follows, from 0.

A capture has an empty range at its begin and one at its end: a range round it would cross those of the lines
in which it begins and ends.
"""

CAPTURE_PATTERN = re.compile(rf"^{re.escape(CAPTURE)}(\d+)$")
CAPTURED_PATTERN = re.compile(rf"^{re.escape(CAPTURED)}(\d+)$")
REPLAY_PATTERN = re.compile(rf"^{re.escape(REPLAY)}(\d+)$")
