"""The table of kernel names with their truth, and what counts as right.

``tests/data/kernel_names.tsv`` was written by hand from what each kernel does, not from what profrun answers.
Its columns: the name; its category, several joined by | where a kernel is both; dtype and accumulate (? where
the name does not tell, empty where nobody judged); the library, several where the name allows several;
origin (seen in a recording, source of a library, blind: judged before any rule was tried on it); where; calls
and GPU time in ns over the recordings of the shared data.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from typing import Literal

from profrun.analysis.kernel_names import read_kernel
from tests.conftest import ROOT

Verdict = Literal["right", "wrong", "unknown"]
SILENT = ("unknown", "triton")
"""Answers that claim nothing."""


@dataclass(frozen=True)
class Truth:
    """One row of the table; see the module."""

    name: str
    category: str
    dtype: str
    accumulate: str
    library: str
    origin: str
    where: str
    calls: int
    gpu_ns: int

    @property
    def held_out(self) -> bool:
        """A third of the names, by their hash: the rules were fitted on the others."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 3 == 0


def table() -> list[Truth]:
    """Every row."""
    path = ROOT / "tests" / "data" / "kernel_names.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        Truth(**{**row, "calls": int(row["calls"] or 0), "gpu_ns": int(row["gpu_ns"] or 0)})  # type: ignore[arg-type]
        for row in rows
    ]


def category(row: Truth) -> Verdict:
    """Is the category right? To claim nothing is right where nothing fits."""
    allowed, found = row.category.split("|"), read_kernel(row.name).category
    if found in allowed or (found in SILENT and "unknown" in allowed):
        return "right"
    return "unknown" if found in SILENT else "wrong"


def dtype(row: Truth) -> Verdict | None:
    """Is the type of the inputs right? None where nobody judged."""
    return _type(row.dtype, read_kernel(row.name).dtype)


def accumulate(row: Truth) -> Verdict | None:
    """Is the type of the sum right? None where nobody judged."""
    return _type(row.accumulate, read_kernel(row.name).accumulate)


def library(row: Truth) -> Verdict | None:
    """Is the library right? None where nobody judged."""
    if not row.library:
        return None
    allowed, found = row.library.split("|"), read_kernel(row.name).family
    if found in allowed or (found == "unknown" and "-" in allowed):
        return "right"
    return "unknown" if found == "unknown" else "wrong"


def _type(truth: str, found: str | None) -> Verdict | None:
    if not truth:
        return None
    if found is None:
        return "right" if truth == "?" else "unknown"
    return "right" if found == truth else "wrong"


def shares(verdicts: list[tuple[Verdict, int]]) -> dict[Verdict, float]:
    """Right, wrong and unknown as parts of the sum of the weights."""
    whole = sum(weight for _, weight in verdicts)
    return {
        one: sum(weight for verdict, weight in verdicts if verdict == one) / whole
        for one in ("right", "wrong", "unknown")
    }
