"""Runs a program that knows nothing of turns: ``in_turn.py MODULE,... PROGRAM ARGUMENT...``.

The modules are imported first, then the program waits until no other one uses the GPU. It has it until its
last line has run.
"""

import importlib
import runpy
import sys
from pathlib import Path

import parts

modules, *sys.argv = sys.argv[1:]
for module in modules.split(","):
    importlib.import_module(module)
parts.wait_for_turn()
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
parts.give_turn()
