"""The page of a comparison: its numbers are those of `compare --json`, and names stay text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import ComparedTrial, read_trial
from profrun.analysis.compare.compared_trial import KernelFacts, KernelGroup
from profrun.analysis.compare.point_pairs import compare_points
from profrun.collectors.normalize import normalize
from profrun.contract.units import signed_time_text, time_text
from profrun.reports.change_section import Change, _other_direction
from profrun.reports.compare_sentence import Called
from profrun.reports.page import EVERY, comparison_html
from profrun.traces.trace import Trace
from tests.analysis.compare.test_point_pairs import NONE, TORCH, _run
from tests.analysis.compare.trials import trial
from tests.conftest import ROOT
from tests.reports.documents import Node, parse, rows_of

BAD = "k</script><img src=x onerror=alert(1)>&\"'"


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> list[ComparedTrial]:
    """Two programs with modules, recorded on an H200; the second does more work per step."""
    found = []
    for name in ("baseline", "optimised"):
        file = ROOT / f"tests/data/h200/transformer/{name}-torch-r1/rank0/pt.trace.json.gz"
        with Trace(normalize([file], tmp_path_factory.mktemp(name) / "trace").trace) as trace:
            found.append(read_trial(trace, label=name))
    return found


def _page(
    a: list[ComparedTrial],
    b: list[ComparedTrial],
    called: Called | None = None,
    allow: Sequence[str] = (),
) -> tuple[Node, Any]:
    """The page, and the JSON document of the same comparison."""
    found = compare_points(a, b, allow=allow)
    page = parse(comparison_html(Change(found, called), made_by="a test"))
    return page, json.loads(json.dumps(found.to_json()))


def _exact(page: Node, name: str, column: int) -> list[float | None]:
    """The exact values of a column of numbers."""
    (table,) = page.every("table", data_table=name)
    cells = [row.every("td")[column] for row in table.every("tbody")[0].every("tr")]
    return [float(cell.attributes["data-v"]) if cell.attributes["data-v"] else None for cell in cells]


def test_the_numbers_of_the_page_are_those_of_json(sides: list[ComparedTrial]) -> None:
    page, document = _page(sides[:1], sides[1:], allow=["work"])
    kernels = document["kernels"]
    assert (len(kernels), len(document["modules"])) == (10, 10)
    assert _exact(page, "kernel-changes", 3) == [row["a_ns"] or None for row in kernels]
    assert _exact(page, "kernel-changes", 4) == [row["b_ns"] or None for row in kernels]
    assert _exact(page, "kernel-changes", 5) == [row["delta_ns"] for row in kernels]
    assert [row[0] for row in rows_of(page, "kernel-changes")] == [
        "-" if row["status"] == "unclear" else row["status"] for row in kernels
    ]
    assert _exact(page, "module-changes", 3) == [row["delta_ns"] for row in document["modules"]]
    assert _exact(page, "sides", 5) == [side["step_ns"] for side in document["sides"]]
    step = [value for value in _exact(page, "waterfall-step", 1) if value is not None]
    whole = [sum(part[side] for part in document["parts"]) for side in ("a_ns", "b_ns")]
    assert [step[0], step[-1]] == pytest.approx(whole)
    assert sum(step[1:-1]) == pytest.approx(document["total_delta_ns"], abs=1)
    gpu = [value for value in _exact(page, "waterfall-gpu", 1) if value is not None]
    assert sum(gpu[1:-1]) == pytest.approx(document["parts"][0]["delta_ns"], abs=1)
    (caption,) = page.every("table", data_table="waterfall-step")[0].every("caption")
    assert caption.text.startswith(f"the step: {signed_time_text(document['total_delta_ns'])} in all")


def test_every_way_of_recording_has_a_row_and_its_steps_are_drawn() -> None:
    page, document = _page(_run("r1", 1000, NONE, TORCH), _run("r2", 1500, NONE, TORCH))
    rows = page.every("table", data_table="verdicts")[0].every("tbody")[0].every("tr")
    assert [row.every("th")[0].text for row in rows] == ["without a profiler", "under torch"]
    for row, pair in zip(rows, document["pairs"], strict=True):
        cells = row.every("td")
        assert [cell.text for cell in cells[:2]] == [time_text(side["step_ns"]) for side in pair["sides"]]
        assert float(cells[2].attributes["data-v"]) == pair["ratio"]
        assert cells[-1].text == "3 + 3"
    dots = page.every("div", class_="wide")[0].every("circle")
    assert len(dots) == sum(
        len(times) for pair in document["pairs"] for side in pair["sides"] for times in side["times_ns"]
    )
    (lead,) = page.every("p", class_="lead")
    assert lead.text.startswith("slower r1 1.003 us -> r2 1.503 us per step: 49.9 % slower [")


def test_a_refusal_shows_what_was_measured_and_the_command() -> None:
    called = Called(("r1", "vs", "r2"))
    page, _ = _page(_run("r1", 1000, TORCH), _run("r2", 1500, TORCH, ranks=2), called)
    (lead,) = page.every("p", class_="lead")
    assert lead.text.startswith(
        "incomparable r1 1.003 us, r2 1.503 us per step, no verdict: 1 ranks against 2"
    )
    assert "profrun compare r1 vs r2 --allow ranks" in [code.text for code in page.every("code")]
    assert page.every("table", data_table="kernel-changes") == []


def test_hostile_names_stay_text() -> None:
    group = KernelGroup(BAD, "gemm", "compute", (BAD,), "o", f"{BAD}.x", False, 5, 400)
    facts = {BAD: KernelFacts(BAD, BAD, "gemm")}
    bad = replace(trial(label=BAD, variant=BAD, job="r"), kernel_groups=(group,), facts=facts)
    page, document = _page([bad], [trial((90, 91, 92), label="b", variant="b", job="r")])
    assert document["sides"][0]["name"] == BAD
    assert page.every("img") == []
    assert len(page.every("script")) == len(EVERY.scripts)
    names = {name.attributes["title"] for name in page.every("span", class_="name")}
    assert any(BAD in name for name in names)
    (title,) = page.every("title")
    assert BAD in title.text


def test_many_steps_are_thinned_and_that_is_said() -> None:
    long = tuple(range(1000, 2500))
    page, _ = _page([trial(long)], [trial((1100, 1200))])
    assert 100 < len(page.every("div", class_="wide")[0].every("circle")) <= 202
    assert "At most 200 steps of a trial are drawn" in page.text


def test_a_profiler_that_turns_the_change_round_is_said() -> None:
    """Without a profiler 500 ns shorter, under torch 500 ns longer."""
    a = [*_run("r1", 1500, NONE), *_run("r1", 1000, TORCH)]
    b = [*_run("r2", 1000, NONE), *_run("r2", 1500, TORCH)]
    plain, torch = compare_points(a, b).pairs
    said = parse(str(_other_direction(torch, plain))).text
    assert "Without a profiler the step changes by -500 ns, under torch by +500 ns" in said
    assert _other_direction(torch, torch) is None
    same = compare_points([*_run("r1", 1500, NONE), *_run("r1", 1500, TORCH)], b).pairs
    assert _other_direction(same[1], same[0]) is None
