"""The evidence of a finding as text: a name and a value with its unit for each number."""

from __future__ import annotations

import json
from collections.abc import Mapping

from profrun.contract.units import bytes_text, percent_text, rate_text, some_of, time_text


def evidence_lines(evidence: Mapping[str, object], *, most: int = 5) -> list[tuple[str, str]]:
    """(name, value with its unit) of each number.

    Args:
        evidence: ``Finding.evidence``: units are in the names; ``NAME_of`` is the denominator of ``NAME``,
            and is put behind it.
        most: items of a list that are shown; the text says how many more there are.
    """
    found = []
    for name, value in evidence.items():
        if name.endswith("_of") or value is None or value in ([], {}):
            continue
        of = evidence.get(f"{name}_of") or evidence.get(f"{name.removesuffix('_share')}_of")
        text = evidence_text(name, value, most)
        if of and not isinstance(of, list):
            known = evidence.get(str(of))
            text += f" of {evidence_text(str(of), known, most) if isinstance(known, int | float) else of}"
        found.append((_title(name), text))
    return found


def _title(name: str) -> str:
    for unit in ("_ns", "_bytes", "gb_s"):
        name = name.removesuffix(unit).replace(f"{unit}_per_", "_per_")
    return name.replace("_", " ").strip() or "rate"


def evidence_text(name: str, value: object, most: int = 5) -> str:
    """One piece of evidence as text; its unit follows from its name."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return some_of([str(item) for item in value], most)
    if isinstance(value, dict):
        return ", ".join(f"{key} {json.dumps(item)}" for key, item in value.items())
    return _number(name, value) if isinstance(value, (int, float)) else str(value)


def _number(name: str, value: float) -> str:
    if name.endswith("_ns") or "_ns_" in name:
        return time_text(value)
    if "bytes" in name:
        return bytes_text(value)
    if "share" in name or name in ("utilization", "occupancy"):
        return percent_text(value)
    if name.endswith("gb_s"):
        return rate_text(value, "GB/s")
    return f"{value:.0f}" if value == int(value) else f"{value:.4g}"
