"""One damaged file through profrun: what it said, and whether that was right.

``observe`` runs profrun and keeps what it says. ``judge`` holds that against the truth and against what
profrun says of the same recording without damage; nothing here knows how profrun decides.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import profrun
from planted_damage.model import Truth
from planted_damage.slack import READ_TO_NS
from profrun.errors import ProfrunError

MOVED = ("offset", "drift")


@dataclass(frozen=True)
class Clock:
    """What profrun says of one GPU clock; times in ns, bounds of what must be added to the GPU's times.

    Attributes:
        who: process, device and session, as numbers of the trace.
        verdict: consistent, offset, drift, contradiction or unknown.
        constant: bounds of what must be added if that is one number.
        first: bounds at the first GPU record if the clock may drift.
        last: bounds at the last GPU record.
        span: time from the first to the last GPU record, as the file has it.
        moved: what was added at the first and at the last record.
    """

    who: tuple[int, int, int]
    verdict: str
    constant: tuple[int | None, int | None]
    first: tuple[int | None, int | None]
    last: tuple[int | None, int | None]
    span: int
    moved: tuple[int, int]


@dataclass(frozen=True)
class Seen:
    """What profrun said of one recording.

    Attributes:
        error: type and text of an error; None where there was none.
        refused: whether the error is a refusal in one line (InputError) and no crash.
        clocks: every clock.
        contradictions: codes of contradictions, with how many records.
        quality: codes of findings about quality, with how many records they concern (0 where none is said).
        critical: codes among them that are critical.
        withheld: numbers that are withheld.
        seconds: wall time.
    """

    error: str | None = None
    refused: bool = False
    clocks: tuple[Clock, ...] = ()
    contradictions: dict[str, int] = field(default_factory=dict)
    quality: dict[str, int] = field(default_factory=dict)
    critical: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def alarms(self) -> set[str]:
        """Codes that say that times or records cannot be true."""
        verdicts = {clock.verdict for clock in self.clocks}
        return verdicts & {*MOVED, "contradiction"} | set(self.contradictions)


def observe(paths: Sequence[Path], work: Path) -> Seen:
    """Normalize the files and ask for the quality of the recording."""
    began = time.perf_counter()
    out = work / "trace"
    try:
        with profrun.normalize(list(paths), out) as trace:
            meta: dict[str, Any] = dict(trace.meta)
            summary = trace.summary(top=1)
            trace.diagnose()
        seen = Seen(
            clocks=tuple(_clock(entry) for entry in meta.get("clocks", ())),
            contradictions={entry["code"]: entry["count"] for entry in meta.get("contradictions", ())},
            quality={found.code: found.count or 0 for found in summary.quality},
            critical=tuple({found.code for found in summary.quality if found.severity == "critical"}),
            withheld=tuple(str(item) for item in summary.withheld),
            seconds=time.perf_counter() - began,
        )
    except ProfrunError as error:
        seen = Seen(error=f"{type(error).__name__}: {error}", refused=True)
    except Exception as error:
        seen = Seen(error=f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return seen


def _clock(entry: dict[str, Any]) -> Clock:
    return Clock(
        (entry["process"], entry["device"], entry["session"]),
        entry["verdict"],
        (entry["constant_low_ns"], entry["constant_high_ns"]),
        (entry["low_ns"], entry["high_ns"]),
        (entry["last_low_ns"], entry["last_high_ns"]),
        entry["last_ns"] - entry["first_ns"],
        (entry["moved_ns"], entry["last_moved_ns"]),
    )


@dataclass(frozen=True)
class Verdict:
    """How profrun did on one damaged file.

    Attributes:
        new: alarms and findings about quality that the undamaged recording does not have.
        visible: whether the yardstick (``slack``) says that the damage must show; None for kinds that
            displace no clock.
        alarmed: whether there is a new alarm.
        inside: whether the truth is inside the stated bounds; None where no bounds are stated.
        wrongly_moved: whether the times of a GPU were moved although no clock was displaced as a whole.
        residual_ns: what the repair left of the displacement, beyond what was there before; None without a
            repair.
    """

    new: tuple[str, ...]
    visible: bool | None
    alarmed: bool
    inside: bool | None
    residual_ns: int | None
    wrongly_moved: bool = False

    @property
    def found(self) -> bool:
        """Named, or too small to show and inside the stated bounds."""
        return self.alarmed or (self.visible is False and self.inside is not False)


def judge(truth: Truth, seen: Seen, before: Seen, visible: bool | None) -> Verdict:
    """Hold what was said against what was done."""
    quality = {
        f"quality:{code}"
        for code, count in seen.quality.items()
        if code not in before.quality or count > 1.5 * before.quality[code]
    }
    grown = {
        code for code, count in seen.contradictions.items() if count > before.contradictions.get(code, 0)
    }
    old = {clock.who: clock for clock in before.clocks}
    changed = {
        clock.verdict
        for clock in seen.clocks
        if clock.verdict in (*MOVED, "contradiction") and _differs(clock, old.get(clock.who))
    }
    other = truth.offset_ns is None and truth.drift_ppm is None
    inside = None if other else _inside(truth, seen, before)
    new = tuple(sorted(quality | grown | changed))
    # A clock that was wrong before the damage and is wrong with it was found, too.
    alarmed = bool(new) or (not other and bool(seen.alarms & before.alarms & {*MOVED, "contradiction"}))
    if truth.visible is not None:
        visible = truth.visible
    moved = any(
        abs(clock.moved[0] - (old[clock.who].moved[0] if clock.who in old else 0)) > READ_TO_NS
        for clock in seen.clocks
    )
    whole = truth.drift_ppm is not None or bool(not other and _concerned(truth, seen))
    residual = None if other else _residual(truth, seen, before)
    return Verdict(new, visible, alarmed, inside, residual, moved and not whole)


def _differs(clock: Clock, old: Clock | None) -> bool:
    """Whether a clock is judged in another way than without damage."""
    if old is None or clock.verdict != old.verdict:
        return True
    return any(abs(now - was) > READ_TO_NS for now, was in zip(clock.moved, old.moved, strict=True))


def _wanted(truth: Truth, clock: Clock) -> tuple[float, float]:
    """What must be added at the first and at the last record of a clock that was displaced."""
    if truth.drift_ppm is not None:
        rate = truth.drift_ppm / 1e6
        return 0.0, -clock.span * rate / (1 + rate)
    assert truth.offset_ns is not None
    return float(-truth.offset_ns), float(-truth.offset_ns)


def _concerned(truth: Truth, seen: Seen) -> list[Clock]:
    """The clocks that were displaced as a whole: of a session, or all of them."""
    if truth.process is not None or truth.lane is not None or (truth.anchor_ns and truth.offset_ns):
        return []  # a part of a clock's records, or host and GPU together
    if truth.session is None:
        return list(seen.clocks)
    sessions = sorted({clock.who[2] for clock in seen.clocks})
    later = sessions[len(sessions) // 2 :]  # the planted copy has as many sessions as the file itself
    named = [clock for clock in seen.clocks if len(sessions) > 1 and clock.who[2] in later]
    return named or [clock for clock in seen.clocks if clock.who[0] == truth.session]  # taken for a rank


Bounds = tuple[int | None, int | None]


def _pairs(truth: Truth, seen: Seen, before: Seen) -> list[tuple[Clock, list[tuple[Bounds, Bounds, float]]]]:
    """Each concerned clock: at its first and at its last record, what is stated, what was possible without
    damage, and what was planted. A clock that is right without damage had nothing to add."""
    old = {clock.who: clock for clock in before.clocks}
    found = []
    for clock in _concerned(truth, seen):
        was = old.get((*clock.who[:2], 0))
        right = was is None or was.verdict not in (*MOVED, "contradiction")
        if not right and truth.drift_ppm is not None:
            continue  # how this clock ran without damage is not known
        possible: list[Bounds] = [(0, 0)] * 2 if right or was is None else [was.first, was.last]
        rows = list(zip((clock.first, clock.last), possible, _wanted(truth, clock), strict=True))
        if truth.drift_ppm is None and clock.constant != (None, None):
            one = (0, 0) if right or was is None else was.constant
            rows.append((clock.constant, one, rows[0][2]))
        found.append((clock, rows))
    return found


def _inside(truth: Truth, seen: Seen, before: Seen) -> bool | None:
    rows = [row for _, rows in _pairs(truth, seen, before) for row in rows if row[0] != (None, None)]
    return all(_meet(*row) for row in rows) if rows else None


def _meet(stated: Bounds, possible: Bounds, planted: float) -> bool:
    """Whether what is stated holds something of what is true; to the ns, which rounding may cost."""
    low, high = (_or(stated[0], -math.inf), _or(stated[1], math.inf))
    least, most = (_or(possible[0], -math.inf) + planted, _or(possible[1], math.inf) + planted)
    return low <= most + 1 and least - 1 <= high


def _or(value: int | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _residual(truth: Truth, seen: Seen, before: Seen) -> int | None:
    """How far the repaired times are from the truth; not for clocks that were wrong before."""
    left = [
        abs(moved - planted)
        for clock, rows in _pairs(truth, seen, before)
        if clock.moved != (0, 0)
        for moved, (_, possible, planted) in zip(clock.moved, rows[:2], strict=True)
        if possible == (0, 0)
    ]
    return round(max(left)) if left else None


def as_json(seen: Seen) -> dict[str, Any]:
    """For a file of results."""
    return asdict(seen)


def from_json(raw: dict[str, Any]) -> Seen:
    """Back from a file of results."""
    clocks = tuple(
        Clock(
            tuple(clock["who"]),
            clock["verdict"],
            tuple(clock["constant"]),
            tuple(clock["first"]),
            tuple(clock["last"]),
            clock["span"],
            tuple(clock["moved"]),
        )
        for clock in raw["clocks"]
    )
    return Seen(
        **(raw | {"clocks": clocks, "withheld": tuple(raw["withheld"]), "critical": tuple(raw["critical"])})
    )
