"""The other quantities of a comparison as HTML: energy in its own unit and words, or why it is missing."""

from __future__ import annotations

from dataclasses import replace

from profrun.analysis.compare.point_pairs import compare_points
from profrun.reports.html import Html
from profrun.reports.quantities_section import quantities_html
from tests.analysis.compare.trials import OTHER, trial
from tests.reports.documents import Node, parse, rows_of

TIMES = ((100, 101, 99, 100, 102), (99, 101, 100, 100, 98), OTHER)


def _section(joules: tuple[float | None, float | None], note: str | None = None) -> Html | None:
    def side(energy: float | None, label: str) -> list[object]:
        made = (trial(times, label=f"{label}{number}") for number, times in enumerate(TIMES))
        return [
            replace(one, energy_j=energy and energy * (1 + 0.001 * number), energy_note=note)
            for number, one in enumerate(made)
        ]

    found = compare_points(side(joules[0], "a"), side(joules[1], "b"))  # type: ignore[arg-type]
    return quantities_html(found.pairs)


def _parsed(found: Html | None) -> Node:
    assert found is not None
    return parse(str(found))


def test_energy_is_in_joules_and_there_is_more_or_less_of_it() -> None:
    page = _parsed(_section((2.0, 1.5)))
    (row,) = [row for row in rows_of(page, "quantities") if row[0] == "energy"]
    assert row[2:5] == ["2.002 J", "1.501 J", "-25.0 %"]
    assert row[6] == "less"
    assert "whole boards" in page.text


def test_energy_that_is_not_compared_has_its_reason() -> None:
    page = _parsed(_section((None, None), "400 ms of steady steps; 4 s are needed"))
    assert "energy is not compared: a0: 400 ms of steady steps; 4 s are needed" in page.text
    assert "energy" not in [row[0] for row in rows_of(page, "quantities")]
