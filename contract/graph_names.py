"""Names of the ranges round the captures and the replays of CUDA graphs in a mapping."""

from __future__ import annotations

import re

CAPTURE, REPLAY = "profrun.capture ", "profrun.graph "
"""Beginnings of the names; the number of the graph in its process follows, from 0."""

CAPTURE_PATTERN = re.compile(rf"^{re.escape(CAPTURE)}(\d+)$")
REPLAY_PATTERN = re.compile(rf"^{re.escape(REPLAY)}(\d+)$")
