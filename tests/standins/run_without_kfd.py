"""Runs a bundle's wrapper as run.py does, on a machine without /dev/kfd: arguments BUNDLE and TRIAL.

Only the preflight's look at /dev/kfd is taken out; everything else is the bundle as it is shipped.
"""

import importlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
preflight = importlib.import_module("_profrun.runner.in_job.preflight")
vars(preflight)["_kfd"] = lambda collector, root: []
sys.exit(importlib.import_module("_profrun.runner.in_job.wrapper").main(sys.argv[2:]))
