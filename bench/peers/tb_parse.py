"""torch_tb_profiler parses one trace; run by bench/normalize.py with the Python of its own environment."""

import sys
import tempfile

from torch_tb_profiler.profiler.data import RunProfileData

with tempfile.TemporaryDirectory() as cache:
    profile = RunProfileData.parse("worker0", "span", sys.argv[1], cache)
    print(f"events {len(profile.events)}")
