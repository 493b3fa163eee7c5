"""Judges the addresses of a truth program's trace by the grids of its kernels: ``judged``.

python -m tests.truth.judge PROGRAM TRACE...
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from profrun.analysis.trace.addresses import UNRESOLVED, Addresses
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.steps import step_index
from profrun.runner.mapped import mapped
from profrun.traces.trace import Trace
from tests.truth.programs import size_of

_SIZE = re.compile(r"# n=(\d+)")
_OPTIMIZER = re.compile(r"^Optimizer\.step#")


@dataclass
class Judgement:
    """Counts of GPU slices of the steps.

    Attributes:
        right: those with the right line, by how the address was found; wrong: the others, told apart.
        whole: those whose grid is none of the program's, with a line all the same, by kernel.
        unresolved: those without an address, by reason.
        share: part of the GPU time with an address.
    """

    right: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)
    unresolved: Counter[str] = field(default_factory=Counter)
    share: float = 0.0


def judged(program: Path, trace: Trace, found: Addresses) -> Judgement:
    """Compare every address with the line that the grid tells."""
    lines = program.read_text().splitlines()
    line_of = {int(hit[1]): at for at, text in enumerate(lines, 1) if (hit := _SIZE.search(text))}
    every = {
        way: {at for at, text in enumerate(lines, 1) if text.lstrip().startswith(start)}
        for way, start in (("forward", "return a * 2"), ("backward", "return grad * 2"))
    }
    calls = {at for at, text in enumerate(lines, 1) if "autograd.backward(" in text}
    steps = {at for at, text in enumerate(lines, 1) if "opt.step()" in text}
    grids = dict(trace.sql("SELECT slice, grid_x FROM kernels").rows)
    source, index = frame(trace), step_index(frame(trace))
    ids = source.of("range")
    optimizer = np.zeros(len(source), dtype=bool)
    optimizer[ids[source.named(ids, lambda text: _OPTIMIZER.match(text) is not None)]] = True
    outermost = source.chase(optimizer)
    result, known, whole = Judgement(), 0, 0
    for slice_id, at, why in zip(found.gpu.tolist(), found.of.tolist(), found.why.tolist(), strict=True):
        if index.of_gpu[slice_id] < 0:
            continue
        name, ns = source.text(slice_id), int(source.durs(slice_id))
        whole += ns
        if at < 0:
            result.unresolved[list(UNRESOLVED)[why]] += 1
            continue
        known += ns
        address = found.table[at]
        told = {line.line for line in address.lines}
        if outermost[source.launch[slice_id]] >= 0:
            expected = steps
        else:
            size = size_of(grids.get(slice_id) or 0, line_of)
            if size is None:
                result.other[f"{name[:60]} -> {sorted(told)} {address.via}"] += 1
                continue
            expected = every["backward" if address.backward else "forward"] or {line_of[size]}
            if address.via == "backward":
                expected = calls
        if told and told <= expected and all(line.file.endswith(program.name) for line in address.lines):
            result.right[address.via + (" replayed" if address.replayed else "")] += 1
        else:
            result.wrong.append(f"{name[:60]}: {sorted(told)} for {sorted(expected)}, {address.via}")
    result.share = known / whole if whole else 0.0
    return result


if __name__ == "__main__":
    for path in sys.argv[2:]:
        with Trace(Path(path)) as one:
            answer = judged(Path(sys.argv[1]), one, mapped(one))
        print(path)
        print(f"  right {dict(answer.right)} wrong {len(answer.wrong)} share {answer.share:.4f}")
        print(f"  unresolved {dict(answer.unresolved)}")
        for text, count in answer.other.items():
            print(f"  other: {count} x {text}")
        for text, count in Counter(answer.wrong).items():
            print(f"  WRONG: {count} x {text}")
