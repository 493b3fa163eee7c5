"""Do two trials do the same work per step? ``work_difference`` is given both and returns what differs.

What was seen counts before what was declared: the shapes of the inputs, then FLOPs of matrix work, then the
same kernels with the same grids, then the declared amounts of the variants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profrun.analysis.compare.compared_trial import ComparedTrial, RecordingConditions
from profrun.analysis.compare.kernel_identity import kernel_identity

AMOUNT = re.compile(
    r"^(?:(?:micro_?|mini_?|global_?|train_?|eval_?)?(?:batch(?:_?size)?|bs)|seq(?:_?len(?:gth)?)?|sequence\w*"
    r"|context\w*|tokens?|samples|rows|dim|d_model|hidden\w*|width|depth|n?_?layers?|n?_?heads?|vocab\w*|size|image\w*"
    r"|resolution|frames|m|n|k|channels|accum\w*|grad_accum\w*|input_len|output_len|prompt\w*|max_new_tokens)$",
    re.IGNORECASE,
)
"""Variant values that tell how much work a step is; others (precision, compile, attention) tell how the work
is done."""
SAME_FLOPS = 0.02
"""Relative difference of matrix FLOPs per step up to which two sides do the same work."""
RECOMPUTE = 1.5
"""FLOP ratio up to which equal inputs are believed: recomputation and padding explain it."""
Launches = tuple[float, tuple[tuple[str, float], ...]]
"""Launches of a kernel per step, and (launch shape, launches per step) of each of its shapes."""


@dataclass(frozen=True)
class WorkDifference:
    """How the work of two trials differs.

    Attributes:
        different: is it different work?
        what: what differs, in words; empty where nothing does.
        fix: what the user can do, in words.
    """

    different: bool
    what: str = ""
    fix: str = ""


_SAME = WorkDifference(different=False)


def work_difference(a: ComparedTrial, b: ComparedTrial) -> WorkDifference | None:
    """How the work per step of two trials differs; None when nothing tells.

    Differences that are explained (recomputation) have a text although the work is the same.
    """
    left, right = a.conditions, b.conditions
    flops = _Flops(a.work.matrix_flops or 0.0, b.work.matrix_flops or 0.0)
    if left.inputs and right.inputs:
        if _dims(left.inputs) != _dims(right.inputs):
            return WorkDifference(different=True, what=f"inputs {left.inputs} against {right.inputs}")
        if not flops.known or 1 / RECOMPUTE < flops.ratio < RECOMPUTE:
            return WorkDifference(different=False, what=flops.text) if flops.differ else _SAME
    if flops.known and not flops.differ:
        return _SAME
    if flops.known and not (a.work.unknown_ops or b.work.unknown_ops):
        return _more_flops(a, b, flops)
    if kernel_launches(a) and kernel_launches(a) == kernel_launches(b):
        return _SAME
    amounts = [key for key in sorted({*left.values, *right.values}) if AMOUNT.match(key)]
    differ = differing_values(left, right, amounts)
    if differ:
        return WorkDifference(different=True, what=", ".join(f"{key} {text}" for key, text in differ.items()))
    return _SAME if amounts or _same_variant(left, right) else None


def differing_values(a: RecordingConditions, b: RecordingConditions, keys: list[str]) -> dict[str, str]:
    """The declared values with these keys that differ, in words: ``{"batch": "8 against 16"}``."""
    return {
        key: f"{a.values.get(key)} against {b.values.get(key)}"
        for key in keys
        if a.values.get(key) != b.values.get(key)
    }


def kernel_launches(trial: ComparedTrial) -> dict[str, Launches]:
    """Launches per typical step by kernel, copies left out: equal means the same GPU work."""
    samples = max(1, len(trial.typical))
    counts: dict[str, int] = {}
    for group in trial.kernel_groups:
        if group.is_kernel_work:
            counts[group.name] = counts.get(group.name, 0) + group.calls
    found = {}
    for name, count in counts.items():
        shapes = trial.facts[name].shapes if name in trial.facts else ()
        found[kernel_identity(name)] = (
            count / samples,
            tuple(sorted((shape, launches / samples) for shape, launches in shapes)),
        )
    return found


@dataclass(frozen=True)
class _Flops:
    """FLOPs of matrix work per step of both sides, 0 where not known."""

    a: float
    b: float

    @property
    def known(self) -> bool:
        return bool(self.a and self.b)

    @property
    def ratio(self) -> float:
        return self.b / self.a

    @property
    def differ(self) -> bool:
        return self.known and abs(self.ratio - 1) > SAME_FLOPS

    @property
    def text(self) -> str:
        return f"{self.a / 1e9:.4g} GFLOP of matrix work against {self.b / 1e9:.4g} ({self.ratio:.3g} times)"


def _more_flops(a: ComparedTrial, b: ComparedTrial, flops: _Flops) -> WorkDifference:
    if not a.work.tokens or not b.work.tokens or a.work.tokens == b.work.tokens:
        return WorkDifference(different=True, what=flops.text)
    rows = f"{a.work.first} against {b.work.first}"
    return WorkDifference(different=True, what=f"{flops.text}, {rows}", fix="`--per token` divides by it")


def _same_variant(a: RecordingConditions, b: RecordingConditions) -> bool:
    return bool(a.job) and a.job == b.job and a.variant == b.variant


def _dims(text: str) -> list[str]:
    """Dimensions without dtypes: '[2, 128, 512] torch.float32' -> ['[2, 128, 512]']."""
    return re.findall(r"\[[^\]]*\]", text)
