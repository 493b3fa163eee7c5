"""Kernel names that fit a table and still differ where the kernels do.

``kernel_labels`` gives the short name of each kernel; where these do not fit, ``fitted_labels`` gives what
the names of matrix kernels tell: ``gemm fp32 tn 256x64x8``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from profrun.analysis.kernel_names import read_kernel

if TYPE_CHECKING:
    from profrun.analysis.trace.kernels import KernelRow

WORD = re.compile(r"[A-Za-z_]\w{2,}")
PLAIN = frozenset(
    ("void", "const", "char", "unsigned", "std", "array", "namespace", "anonymous", "lambda", "native")
)


class Named(Protocol):
    """A kernel with its whole and its short name."""

    @property
    def name(self) -> str:
        """The whole name."""

    @property
    def short(self) -> str | None:
        """What a person calls it; None where nothing is shorter."""


@dataclass(frozen=True)
class _Kernel:
    name: str
    short: str | None


def labels_of(names: Iterable[str]) -> dict[str, str]:
    """Whole name -> label of each of these kernels, copies and fills."""
    kernels = [_Kernel(name, read_kernel(name).short) for name in dict.fromkeys(names)]
    return dict(zip((one.name for one in kernels), kernel_labels(kernels), strict=True))


def kernel_labels(rows: Sequence[Named]) -> list[str]:
    """One label per row: the short name; where several share it, with the words of the whole name that tell
    them apart ('elementwise_kernel: CUDAFunctor_add'); the whole name where no word does."""
    groups: dict[str, list[Named]] = {}
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


def fitted_labels(rows: Sequence[KernelRow], room: int | None) -> list[str]:
    """The labels of the kernels, those of all matrix kernels in words where one of them is too long.

    Args:
        rows: the kernels.
        room: columns that there are for a label; None for as many as wanted.
    """
    labels = kernel_labels(rows)
    words = [matrix_words(row) for row in rows]
    if room is None or not any(text and len(label) > room for text, label in zip(words, labels, strict=True)):
        return labels
    alike = {text: [row for row, one in zip(rows, words, strict=True) if one == text] for text in words}
    found = []
    for row, label, text in zip(rows, labels, words, strict=True):
        if text is None:
            found.append(label)
            continue
        group = alike[text]
        families = [one.family for one in group]
        longer = f"{text} ({row.family})"
        if len(group) > 1 and families.count(row.family) == 1 and len(longer) <= room:
            text = longer
        elif len(group) > 1:
            text += f" #{group.index(row) + 1}"
        found.append(text)
    return found


def matrix_words(row: KernelRow) -> str | None:
    """'gemm fp32 tn 256x64x8': what the name of a matrix kernel tells; None where it tells too little."""
    if row.tile is None:
        return None
    tile = "x".join(map(str, row.tile))
    return " ".join(part for part in (row.category, row.dtype, row.layout, tile) if part)
