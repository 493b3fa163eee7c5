"""The text that a timeline shows for a slice: grid of a kernel, bytes of a copy, input shapes of an op.

Equal texts are written once; a slice holds the number of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profrun.analysis.trace.columns import Ints, groups, int_column, text_codes
from profrun.analysis.trace.frame import frame
from profrun.contract.units import bytes_text

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

MOST_TEXTS = 20_000
"""A table with more different texts than this gives none: they would be larger than the slices."""
MOST_CHARACTERS = 300
"""Longer texts are cut, and end with three dots."""
_KERNEL = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "smem")


def details(trace: Trace) -> tuple[NDArray[np.int32], list[str]]:
    """A text for each slice.

    Returns:
        int32, shape (slices,): the index of its text by slice id, -1 for none; and the texts.
    """
    code = np.full(len(frame(trace)), -1, dtype=np.int32)
    texts: list[str] = []
    for slices, group, found in (_kernels(trace), _copies(trace), _ops(trace)):
        if not 0 < len(found) <= MOST_TEXTS:
            continue
        code[slices] = np.where(group >= 0, group + len(texts), -1)
        texts += [text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "..." for text in found]
    return code, texts


def _kernels(trace: Trace) -> tuple[Ints, Ints, list[str]]:
    """(slices, text of each, texts) of kernels."""
    con = trace.tables
    slices = int_column(con, "kernels", "slice", np.int64)
    columns = [int_column(con, "kernels", f"coalesce({name}, -1)::BIGINT", np.int64) for name in _KERNEL]
    first, group = groups(*columns)
    return slices, group, [_kernel(*(int(column[at]) for column in columns)) for at in first]


def _kernel(*values: int) -> str:
    grid, block, (registers, smem) = values[:3], values[3:6], values[6:]
    parts = [
        f"{word} {' x '.join(str(one) for one in size)}"
        for word, size in (("grid", grid), ("block", block))
        if size[0] >= 0
    ]
    parts += [f"{registers} registers per thread"] if registers >= 0 else []
    parts += [f"{bytes_text(smem)} of shared memory per block"] if smem > 0 else []
    return ", ".join(parts)


def _copies(trace: Trace) -> tuple[Ints, Ints, list[str]]:
    """(slices, text of each, texts) of copies and fills."""
    con = trace.tables
    slices = int_column(con, "copies", "slice", np.int64)
    count = int_column(con, "copies", "coalesce(bytes, -1)", np.int64)
    named = [text_codes(con, "copies", column) for column in ("direction", "src_kind", "dst_kind")]
    first, group = groups(count, *(code for code, _ in named))
    texts = []
    for at in first:
        direction, source, target = (_text(texts_, int(code[at])) for code, texts_ in named)
        size = bytes_text(int(count[at])) if count[at] >= 0 else ""
        kinds = f"{source} to {target} memory" if source and target else ""
        texts.append(", ".join(part for part in (direction, size, kinds) if part))
    return slices, group, texts


def _text(texts: Sequence[str], code: int) -> str:
    return texts[code] if code >= 0 else ""


def _ops(trace: Trace) -> tuple[Ints, Ints, list[str]]:
    """(slices, text of each, texts) of ops with input shapes."""
    slices = int_column(trace.tables, "ops", "slice", np.int64)
    code, texts = text_codes(trace.tables, "ops", "shapes")
    return slices, code.astype(np.int64), [f"input shapes {text}" for text in texts]
