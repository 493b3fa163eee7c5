"""Runs cases one after another, counts how they ended, and keeps every case that broke."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz import child
from tests.fuzz.families import FAMILIES, Material


@dataclass
class Counts:
    """How many cases of each family ended how; the names of those that broke."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def total(self, outcome: str) -> int:
        """Cases of all families with this outcome."""
        return sum(counter[outcome] for counter in self.outcomes.values())

    def text(self) -> str:
        """A table: a line per family, and their sum."""
        head = f"{'family':14}" + "".join(f"{name:>10}" for name in ("tried", *child.OUTCOMES))
        rows = [*self.outcomes.items(), ("all", sum(self.outcomes.values(), Counter()))]
        lines = [
            f"{name:14}{counter.total():10}" + "".join(f"{counter[one]:10}" for one in child.OUTCOMES)
            for name, counter in rows
        ]
        return "\n".join([head, *lines])


def run(
    seed: int,
    count: int,
    material: Material,
    keep: Path,
    *,
    first: int = 0,
    families: tuple[str, ...] = tuple(FAMILIES),
    progress: Callable[[int, Counts], None] = lambda number, counts: None,
) -> Counts:
    """Carry out cases ``first`` to ``first + count`` of a seed; a case depends on its seed and number only.

    Args:
        keep: each case that broke is kept here in a folder of its own, with ``case.json`` about it.
        progress: called after each case.
    """
    counts = Counts({name: Counter() for name in families})
    weights = [FAMILIES[name][1] for name in families]
    for number in range(first, first + count):
        dice = random.Random(f"{seed}/{number}")
        name = dice.choices(families, weights)[0]
        folder = Path(tempfile.mkdtemp(prefix="profrun-fuzz-"))
        try:
            lines = FAMILIES[name][0](dice, material, folder)
            ended = child.carry_out(lines, folder)
            counts.outcomes[name][ended.outcome] += 1
            if ended.outcome not in ("read", "refused"):
                case = f"{seed}-{number}-{name.replace(' ', '-')}"
                counts.broken.append(f"{case}: {ended.outcome}, exit {ended.code}: {_last(ended.said)}")
                shutil.copytree(folder, keep / case, symlinks=True, dirs_exist_ok=True)
                about = json.dumps({"lines": lines, **asdict(ended)}, indent=1, default=str)
                (keep / case / "case.json").write_text(about)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        progress(number, counts)
    return counts


def _last(said: str, most: int = 300) -> str:
    """The last line of what was said, shortened."""
    lines = said.strip().splitlines()
    return lines[-1][:most] if lines else ""
