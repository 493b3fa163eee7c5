"""Steps of equal work on one core of a CPU; other work is planted beside some of them.

With ``--plant SEED`` the seed decides whether the run has planted load (3 of 10 runs have), and during which
steps: then as many processes as there are cores spin. ``planted.json`` in the trial's folder says so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np

import profrun

SIZE = 160


def main() -> None:
    """Run the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--products", type=int, default=16, help="matrix products per step")
    parser.add_argument("--plant", type=int)
    parser.add_argument("--note", type=Path)
    args = parser.parse_args()
    chance = random.Random(args.plant)
    planted = None
    if args.plant is not None and chance.random() < 0.3:
        first = chance.randrange(args.steps // 6, args.steps // 2)
        planted = (first, first + args.steps // 3)
    if args.note is not None:
        args.note.write_text(json.dumps(planted))
    a = np.random.default_rng(0).standard_normal((SIZE, SIZE))
    spinning: list[subprocess.Popen[bytes]] = []
    for step in range(args.steps):
        if planted is not None and step == planted[0]:
            cores = os.cpu_count() or 1
            spinning = [subprocess.Popen([sys.executable, "-SEc", "while 1: pass"]) for _ in range(cores)]
        if planted is not None and step == planted[1]:
            for process in spinning:
                process.kill()
        for _ in range(args.products):
            a @ a
        profrun.step()
    for process in spinning:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
