"""The tones of the words for severities, states and verdicts. No other module decides on their colours."""

from __future__ import annotations

from collections.abc import Mapping

from profrun.reports.terminal_layout import Tone, Toned

TONES: Mapping[str, Tone] = {
    "critical": "bad",
    "warning": "care",
    "finished": "good",
    "failed": "bad",
    "timeout": "bad",
    "lost": "bad",
    "broken": "bad",
    "cancelled": "care",
    "interrupted": "care",
    "faster": "good",
    "slower": "bad",
    "inconclusive": "care",
    "incomparable": "care",
    "held": "good",
    "refuted": "bad",
    "proven": "good",
    "not the same": "bad",
    "no gain": "faint",
    "not proven": "care",
    "not applied": "care",
    "not tried": "care",
    "not checked": "care",
}
"""Severity, state of a run, a trial or an expectation, or verdict -> its tone; other words have none."""


def toned(word: str) -> str:
    """A state or a verdict in its tone, for a cell of a table."""
    tone = TONES.get(word)
    return word if tone is None else Toned(word, tone)


def tones_of(*words: str) -> tuple[Toned, ...]:
    """The states and verdicts among some words that have a tone, for ``Prose.toned``."""
    return tuple(Toned(word, TONES[word]) for word in words if word in TONES)
