"""Do two trials do the same work per step? ``compare_work`` is given both and returns what is known.

What was seen counts before what was declared: the shapes of the inputs, then FLOPs of matrix work, then the
same kernels with the same grids, then declared amounts (values of the variants, arguments of the program).
Where none of these tells, signs are looked for (``work_signs``). Of these, other sizes of the same kernels
are evidence of different work, and so are signs against the same work where there is none for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from profrun.analysis.compare.compared_trial import ComparedTrial, RecordingConditions
from profrun.analysis.compare.kernel_identity import kernel_identity
from profrun.analysis.compare.work_signs import WorkSigns, work_signs
from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.analysis.trace.matrix_ops import is_counted

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
Answer = Literal["same", "different", "unknown"]


@dataclass(frozen=True)
class WorkComparison:
    """How the work of two trials compares.

    Attributes:
        answer: ``unknown`` where nothing proves either.
        what: what differs, in words; empty where nothing is to be said.
        fix: what the user can do, in words.
        signs: what was looked at where nothing proves the answer; None where something does.
    """

    answer: Answer
    what: str = ""
    fix: str = ""
    signs: WorkSigns | None = None


_SAME = WorkComparison("same")


def compare_work(a: ComparedTrial, b: ComparedTrial) -> WorkComparison:
    """How the work per step of two trials compares.

    Differences that are explained (recomputation) have a text although the work is the same.
    """
    left, right = a.conditions, b.conditions
    flops = _Flops.of(a, b)
    if left.inputs and right.inputs:
        if _dims(left.inputs) != _dims(right.inputs):
            return WorkComparison("different", f"inputs {left.inputs} against {right.inputs}")
        if not flops.known or 1 / RECOMPUTE < flops.ratio < RECOMPUTE:
            return WorkComparison("same", flops.text) if flops.differ else _SAME
    if flops.known and not flops.differ:
        return _SAME
    if flops.proves_difference:
        signs = work_signs(a, b)
        if signs.same_program and 1 / RECOMPUTE < flops.ratio < RECOMPUTE:
            return WorkComparison("unknown", flops.text, signs=signs)
        return _more_flops(a, b, flops)
    launches = kernel_launches(a)
    if launches and launches == kernel_launches(b):
        return _SAME
    declared = {**_amounts(left, right), **_amount_arguments(left, right)}
    if declared:
        return WorkComparison("different", ", ".join(f"{key} {text}" for key, text in declared.items()))
    if _same_amounts(left, right) or _same_variant(left, right):
        return _SAME
    signs = work_signs(a, b)
    if signs.other_sizes or (signs.speak_against and not signs.speak_for):
        return WorkComparison("different", "; ".join(signs.speak_against), signs=signs)
    return WorkComparison("unknown", "; ".join(signs.speak_against), signs=signs)


def _amounts(a: RecordingConditions, b: RecordingConditions) -> dict[str, str]:
    """The declared amounts that differ, in words."""
    return differing_values(a, b, [key for key in sorted({*a.values, *b.values}) if AMOUNT.match(key)])


def _same_amounts(a: RecordingConditions, b: RecordingConditions) -> bool:
    """Are amounts declared, all of them equal?"""
    return any(AMOUNT.match(key) for key in (*a.values, *b.values)) and not _amounts(a, b)


def _amount_arguments(a: RecordingConditions, b: RecordingConditions) -> dict[str, str]:
    """Amounts that two trials of one script were given as arguments and that differ, in words."""
    if not a.program or not b.program or a.program[0] != b.program[0]:
        return {}
    left, right = options_of(a.program), options_of(b.program)
    return {
        f"--{key}": f"{left[key]} against {right[key]}"
        for key in sorted(left.keys() & right.keys())
        if AMOUNT.match(key.replace("-", "_")) and left[key] != right[key]
    }


def options_of(program: tuple[str, ...]) -> dict[str, str]:
    """The options of a program with their values: ``--batch-size 8`` and ``--batch-size=8`` alike."""
    found: dict[str, str] = {}
    for word, following in zip(program[1:], (*program[2:], "--"), strict=False):
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name:
            if equals:
                found[name] = value
            elif not following.startswith("-"):
                found[name] = following
    return found


def differing_values(a: RecordingConditions, b: RecordingConditions, keys: list[str]) -> dict[str, str]:
    """The declared values with these keys that differ, in words: ``{"batch": "8 against 16"}``."""
    return {
        key: f"{a.values.get(key)} against {b.values.get(key)}"
        for key in keys
        if a.values.get(key) != b.values.get(key)
    }


def kernel_launches(trial: ComparedTrial) -> dict[str, Launches]:
    """Launches per typical step by kernel, copies left out: equal means the same GPU work."""
    samples = trial.typical_count
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
    """FLOPs of matrix work per step of both sides, 0 where not known.

    Attributes:
        whole: whether these are all of a side's: no matrix op without shapes, and no matrix kernel that
            was launched by something else than a matrix op (a template of a compiler, a graph).
    """

    a: float
    b: float
    whole: tuple[bool, bool]

    @classmethod
    def of(cls, a: ComparedTrial, b: ComparedTrial) -> _Flops:
        """What the recorded shapes of two trials tell."""
        return cls(a.work.matrix_flops or 0.0, b.work.matrix_flops or 0.0, (_all_counted(a), _all_counted(b)))

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
    def proves_difference(self) -> bool:
        """Do they differ, whatever is not known of a side? What is not whole is at least so much."""
        return self.differ and self.whole[0 if self.ratio > 1 else 1]

    @property
    def text(self) -> str:
        return f"{self.a / 1e9:.4g} GFLOP of matrix work against {self.b / 1e9:.4g} ({self.ratio:.3g} times)"


def _all_counted(trial: ComparedTrial) -> bool:
    matrix = [group for group in trial.kernel_groups if group.category in MATRIX_CATEGORIES]
    return not trial.work.unknown_ops and all(any(map(is_counted, group.path)) for group in matrix)


def _more_flops(a: ComparedTrial, b: ComparedTrial, flops: _Flops) -> WorkComparison:
    if not a.work.tokens or not b.work.tokens or a.work.tokens == b.work.tokens:
        return WorkComparison("different", flops.text)
    rows = f"{a.work.first} against {b.work.first}"
    return WorkComparison("different", f"{flops.text}, {rows}", "`--per token` divides by it")


def _same_variant(a: RecordingConditions, b: RecordingConditions) -> bool:
    return bool(a.job) and a.job == b.job and a.variant == b.variant


def _dims(text: str) -> list[str]:
    """Dimensions without dtypes: '[2, 128, 512] torch.float32' -> ['[2, 128, 512]']."""
    return re.findall(r"\[[^\]]*\]", text)
