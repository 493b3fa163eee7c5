"""The gate for CI: ``parse_rule`` reads a rule, ``gate`` is given a comparison and rules and returns whether
the comparison passes them.

A rule, as ``--fail-on`` takes it:

    slower > 3%                  step time; also `faster`, and `slower` alone (any proven slowdown)
    gpu slower > 3%              GPU time per step; `host slower > 5%` likewise
    kernel 'GLOB' slower > 5%    kernels by name, label or short name
    category gemm slower > 5%    a category of kernels
    energy > 5%                  energy per step of side b over side a
    memory peak > 5%             allocator peak of side b over side a; or `memory peak > 12GiB`
    expectations                 any failed guess of the job

A rule on step time or energy fails when the interval's lower end is above the limit: the change is proven.
It passes when the upper end is below the limit. In between it is inconclusive, and so is a comparison
without interval or one that is incomparable. Exit code: 1 when a rule failed, else 2 when one is
inconclusive, else 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, cast

from profrun.analysis.compare.model import Comparison, Interval, MetricName, Row, is_too_wide
from profrun.analysis.json import to_json
from profrun.analysis.kernel_names import CATEGORIES
from profrun.contract.units import (
    AMOUNT_WORDS,
    TIME_WORDS,
    bytes_text,
    change_interval_text,
    change_text,
    quantity_text,
    signed_percent_text,
    time_text,
)
from profrun.errors import UsageError

Outcome = Literal["passed", "failed", "inconclusive"]
What = Literal["step", "gpu", "host", "energy", "kernel", "category", "memory", "expectations"]
Way = Literal["slower", "faster", "more", "failed"]

_LIMIT = r"(?:\s*(?P<op>>=?)\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>%|[KMGT]i?B|B)?)?"
_STEP = re.compile(rf"^(?:(?P<what>step|gpu|host)\s+)?(?P<way>slower|faster){_LIMIT}$")
_KERNEL = re.compile(rf"^kernel\s+(?P<quote>['\"]?)(?P<name>.+?)(?P=quote)\s+(?P<way>slower|faster){_LIMIT}$")
_CATEGORY = re.compile(rf"^category\s+(?P<name>\S+)\s+(?P<way>slower|faster){_LIMIT}$")
_ENERGY = re.compile(rf"^energy(?:\s+more)?{_LIMIT}$")
_MEMORY = re.compile(rf"^memory(?:\s+peak)?(?:\s+more)?{_LIMIT}$")
ROUNDING = 1e-12
"""What floating point may leave over a limit that is met exactly."""
_FIX = (
    "write 'slower > 3%', \"kernel 'GLOB' slower > 5%\", 'category gemm slower > 5%', 'energy > 5%', "
    "'memory peak > 5%' or 'expectations'"
)


@dataclass(frozen=True)
class Rule:
    """One parsed rule.

    Attributes:
        name: glob of kernels, or a category. limit: a fraction, or bytes where ``absolute``.
    """

    text: str
    what: What
    name: str | None
    way: Way
    limit: float
    absolute: bool = False


@dataclass(frozen=True)
class Result:
    """The outcome of one rule, and a sentence with the number that it rests on."""

    rule: str
    outcome: Outcome
    message: str


@dataclass(frozen=True)
class Gate:
    """All rules together."""

    outcome: Outcome
    results: tuple[Result, ...]

    @classmethod
    def of(cls, results: Sequence[Result]) -> Gate:
        """The gate of these results: failed where one failed, else inconclusive where one is."""
        outcomes = {one.outcome for one in results}
        order: tuple[Outcome, ...] = ("failed", "inconclusive")
        return cls(next((one for one in order if one in outcomes), "passed"), tuple(results))

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 inconclusive."""
        return {"passed": 0, "failed": 1, "inconclusive": 2}[self.outcome]

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return {**to_json(self), "exit_code": self.exit_code}


def parse_rule(text: str) -> Rule:
    """Read one ``--fail-on``.

    Raises:
        UsageError: it is no rule of the grammar above.
    """
    plain = " ".join(text.split())
    if plain in ("expectations", "expectation"):
        return Rule(text, "expectations", None, "failed", 0.0)
    if hit := _STEP.match(plain):
        return Rule(text, cast("What", hit["what"] or "step"), None, _way(hit), _fraction(text, hit))
    if hit := _KERNEL.match(plain):
        return Rule(text, "kernel", hit["name"], _way(hit), _fraction(text, hit))
    if hit := _CATEGORY.match(plain):
        if hit["name"] not in (*CATEGORIES, "memcpy", "memset"):
            raise UsageError(
                f"--fail-on {text!r}: no category {hit['name']!r}", fix=f"one of {', '.join(CATEGORIES)}"
            )
        return Rule(text, "category", hit["name"], _way(hit), _fraction(text, hit))
    if (hit := _ENERGY.match(plain)) and hit["value"]:
        return Rule(text, "energy", None, "more", _fraction(text, hit))
    hit = _MEMORY.match(plain)
    if hit and hit["value"] and hit["unit"] == "%":
        return Rule(text, "memory", None, "more", float(hit["value"]) / 100)
    if hit and hit["value"] and hit["unit"]:
        return Rule(text, "memory", None, "more", float(hit["value"]) * _size(hit["unit"]), absolute=True)
    raise UsageError(f"--fail-on {text!r} is no rule", fix=_FIX)


def _way(hit: re.Match[str]) -> Way:
    return cast("Way", hit["way"])


def _size(unit: str) -> int:
    """Bytes of a unit: 'KiB' is 1024, 'KB' is 1000."""
    return int((1024 if "i" in unit else 1000) ** "BKMGT".index(unit[0]))


def _fraction(text: str, hit: re.Match[str]) -> float:
    if not hit["value"]:
        return 0.0
    if hit["unit"] != "%":
        raise UsageError(f"--fail-on {text!r} has no %", fix=f"write {hit['value']}%")
    return float(hit["value"]) / 100


def gate(
    comparison: Comparison, rules: Sequence[Rule], *, expectations: Sequence[tuple[str, bool | None]] = ()
) -> Gate:
    """Check a comparison against rules.

    Args:
        expectations: (the guess in words, did it hold) of side b, for the rule of that name.
    """
    results = [_result(comparison, rule, expectations) for rule in rules]
    return Gate.of(results)


def _result(comparison: Comparison, rule: Rule, expectations: Sequence[tuple[str, bool | None]]) -> Result:
    if rule.what == "expectations":
        return _expectations(rule, expectations)
    if comparison.verdict == "incomparable":
        why = next((str(one) for one in comparison.reasons if one.stops), "incomparable")
        return Result(rule.text, "inconclusive", f"the sides cannot be compared: {why}")
    if rule.what == "memory":
        return _memory(comparison, rule)
    if rule.what == "step":
        needed = comparison.trials_needed
        return _interval(rule, comparison.denominator.time, comparison.ratio, comparison.ci95, needed)
    if rule.what in ("gpu", "host"):
        return _metric(comparison, rule, "GPU work" if rule.what == "gpu" else "host")
    if rule.what == "energy":
        return _energy(comparison, rule)
    return _rows(comparison, rule)


def _energy(comparison: Comparison, rule: Rule) -> Result:
    metric = next((one for one in comparison.metrics if one.name == "energy"), None)
    what = f"energy {comparison.rate}"
    if metric is None:
        why = comparison.energy_note or "no GPU was sampled (`sample` in the job)"
        return Result(rule.text, "inconclusive", f"{what} is not known: {why}")
    values = f"{quantity_text(metric.a, metric.unit)} -> {quantity_text(metric.b, metric.unit)}"
    return _interval(rule, f"{what}: {values}", metric.ratio, metric.ci95)


def _metric(comparison: Comparison, rule: Rule, name: MetricName) -> Result:
    metric = next((one for one in comparison.metrics if one.name == name), None)
    if metric is None:
        return Result(rule.text, "inconclusive", f"nothing was measured of {name}")
    return _interval(rule, f"{name} {comparison.rate}", metric.ratio, metric.ci95)


def _expectations(rule: Rule, found: Sequence[tuple[str, bool | None]]) -> Result:
    failed = [text for text, passed in found if passed is False]
    if failed:
        return Result(rule.text, "failed", f"{len(failed)} of {len(found)} guesses failed: {failed[0]}")
    if not any(passed for _, passed in found):
        return Result(rule.text, "inconclusive", "no guess of the job could be checked on side b")
    return Result(rule.text, "passed", f"{sum(passed is True for _, passed in found)} guesses hold")


def _memory(comparison: Comparison, rule: Rule) -> Result:
    a, b = comparison.sides[0].memory_peak, comparison.sides[1].memory_peak
    if b is None or (a is None and not rule.absolute):
        return Result(rule.text, "inconclusive", "no memory records (torch: profile_memory: true)")
    if rule.absolute or a is None:
        outcome: Outcome = "failed" if b > rule.limit else "passed"
        return Result(rule.text, outcome, f"peak {bytes_text(b)}")
    change = b / a - 1 if a else 0.0
    outcome = "failed" if change > rule.limit + ROUNDING else "passed"
    text = f"peak {bytes_text(a)} -> {bytes_text(b)} ({signed_percent_text(change)})"
    return Result(rule.text, outcome, text)


def _interval(
    rule: Rule,
    what: str,
    ratio: float | None,
    ci95: Interval | None,
    needed: int | None = None,
) -> Result:
    """Failed when the interval lies beyond the limit, passed when it lies within, else inconclusive.

    Args:
        needed: trials per side that would be enough, where that is known and at most ``stats.MOST_TRIALS``.
    """
    words = AMOUNT_WORDS if rule.what == "energy" else TIME_WORDS
    if ratio is None or ci95 is None:
        more = f"; at least {needed} trials per side are needed" if needed else ""
        shown = "no number" if ratio is None else f"{change_text(ratio, words)}, without an interval"
        return Result(rule.text, "inconclusive", f"{what}: {shown}{more}")
    low, high = ci95
    limit = 1 + rule.limit
    if rule.way == "faster":
        low, high = 1 / high, 1 / low
    text = f"{what}: {change_text(ratio, words)} [{change_interval_text(ci95, words)}]"
    if low > limit:
        return Result(rule.text, "failed", text)
    if high <= limit or (rule.limit == 0 and low <= 1):
        return Result(rule.text, "passed", text)
    if is_too_wide(ci95):
        text = f"{what}: nothing can be said, because the trials of one side differ too much"
    more = f"; about {needed} trials per side would settle it" if needed else ""
    return Result(rule.text, "inconclusive", text + more)


def _rows(comparison: Comparison, rule: Rule) -> Result:
    """Kernels or a category: the ratio of the sums of the rows that are meant.

    Its bounds are the sums of the bounds of these rows. That is wider than an interval of the sum, so the
    outcome is rather 'inconclusive' than wrong. A row without an interval (kernels of one side only) counts
    as it was measured.
    """
    table = comparison.kernels if rule.what == "kernel" else comparison.categories
    rows = [row for row in table if row.basis == "gpu" and _meant(row, rule)]
    what = f"{rule.what} {rule.name}"
    if not rows:
        return Result(rule.text, "inconclusive", f"nothing on either side is {what}")
    a, b = sum(row.a_ns for row in rows), sum(row.b_ns for row in rows)
    if not a or not b:
        return Result(rule.text, "inconclusive", f"{what} is on one side only")
    text = f"{what}: {time_text(a)} -> {time_text(b)} {comparison.rate} ({signed_percent_text(b / a - 1)})"
    if min(comparison.trials) < 2:
        return Result(rule.text, "inconclusive", f"{text}, without repeats")
    if all(row.ci95 is None for row in rows):
        return Result(rule.text, "inconclusive", f"{text}, without an interval")
    low, high = (
        sum(row.b_ns if row.ci95 is None else row.a_ns * row.ci95[end] for row in rows) / a for end in (0, 1)
    )
    return _interval(rule, text, b / a, (low, high))


def _meant(row: Row, rule: Rule) -> bool:
    if rule.what == "category":
        return row.name == rule.name
    names = (*row.a_names, *row.b_names, row.label, row.name)
    return any(fnmatchcase(name, rule.name or "*") for name in names)
