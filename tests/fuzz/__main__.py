"""The long form: ``python -m tests.fuzz --seed 1 --count 20000``.

Real files are taken from the repository and from the shared folder (``PROFRUN_SHARED``) if it is there. What
broke is kept in the folder ``--keep``: the input, what was printed, and ``case.json`` with the command line.
The exit code is 1 if anything broke.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz import child, suite
from tests.fuzz.families import FAMILIES, prepare


def main() -> int:
    """Carry out the cases and print the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", choices=tuple(FAMILIES), help="cases of this family only")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-broken"))
    options = parser.parse_args()
    began = time.monotonic()

    def progress(number: int, counts: suite.Counts) -> None:
        if (number + 1) % 200 == 0:
            broken = len(counts.broken)
            print(f"{number + 1} after {time.monotonic() - began:.0f} s, {broken} broken", flush=True)

    with tempfile.TemporaryDirectory(prefix="profrun-fuzz-") as scratch:
        material = prepare(Path(scratch))
        child.load()
        counts = suite.run(
            options.seed,
            options.count,
            material,
            options.keep,
            first=options.first,
            families=(options.only,) if options.only else tuple(FAMILIES),
            progress=progress,
        )
    print(counts.text())
    for line in counts.broken:
        print(line)
    print(f"seed {options.seed}, {len(material.files)} real files, {time.monotonic() - began:.0f} s")
    return 1 if counts.broken else 0


if __name__ == "__main__":
    sys.exit(main())
