"""Kernel names that fit a table and still differ where the kernels do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profrun.analysis.trace.kernels import KernelRow

WORD = re.compile(r"[A-Za-z_]\w{2,}")
PLAIN = frozenset(
    ("void", "const", "char", "unsigned", "std", "array", "namespace", "anonymous", "lambda", "native")
)


def kernel_labels(rows: Sequence[KernelRow]) -> list[str]:
    """One label a row: the short name, and where several share it, the words of the whole name that tell them
    apart ('elementwise_kernel: CUDAFunctor_add'); the whole name where no word does."""
    groups: dict[str, list[KernelRow]] = {}
    for row in rows:
        groups.setdefault(row.short or row.name, []).append(row)
    found: dict[str, str] = {}
    for short, group in groups.items():
        words = [list(dict.fromkeys(WORD.findall(row.name))) for row in group]
        common = set.intersection(*(set(each) for each in words)) | PLAIN
        labels = [
            f"{short}: {' '.join(own[:2])}"
            if (own := [word for word in each if word not in common])
            else short
            for each in words
        ]
        for row, label in zip(group, labels, strict=True):
            alone = len(group) == 1 or labels.count(label) == 1
            found[row.name] = short if len(group) == 1 else (label if alone else row.name)
    return [found[row.name] for row in rows]
