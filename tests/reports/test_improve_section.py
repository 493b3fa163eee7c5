"""What an improvement gave, in the report of its run."""

from __future__ import annotations

from dataclasses import replace

from profrun.reports.improve_section import improvement_html
from profrun.store.improvement import ExperimentResult, Improvement
from tests.reports.documents import Node, parse, rows_of
from tests.reports.test_improve_text import FOUND, LOADER

BAD = "k</script><img src=x onerror=alert(1)>&\"'"


def section(found: Improvement) -> Node:
    """The section, read back."""
    html = improvement_html(found)
    assert html is not None
    return parse(str(html))


def test_where_nothing_was_tried_there_is_no_section() -> None:
    assert improvement_html(None) is None
    assert improvement_html(replace(FOUND, experiments=())) is None


def test_each_experiment_has_a_row_with_its_verdict_as_a_chip() -> None:
    page = section(FOUND)
    chips = [
        (one.text, one.attributes["class"]) for one in page.every("b") if "chip" in one.attributes["class"]
    ]
    assert chips == [
        ("proven", "chip held"),
        ("proven", "chip held"),
        ("not the same", "chip failed"),
        ("no gain", "chip unknown"),
        ("not proven", "chip unknown"),
        ("slower", "chip failed"),
        ("not applied", "chip unknown"),
        ("failed", "chip failed"),
        ("not tried", "chip unknown"),
        ("planned", "chip unknown"),
    ]


def test_a_row_tells_what_asked_for_it_what_the_hook_did_and_what_changed() -> None:
    rows = rows_of(section(FOUND), "experiments")
    (row,) = [row for row in rows if row[1].startswith("loader-workers-4")]
    assert row == [
        "proven",
        "loader-workers-4dataloader-stallloader-workers=4: 1 DataLoader got 4 worker processes",
        "<= 40.0 %",
        "-35.0 %",
        "-38.0 to -32.0 %",
        "3",
        "loss exactly the same",
        "idle of the GPU: -10 ms",
    ]
    (row,) = [row for row in rows if row[1].startswith("tf32")]
    assert row[1] == "tf32the budget of 20 min is too short for it"
    assert row[2:] == [""] * 6


def test_the_answer_and_what_keeps_it_stand_round_the_table() -> None:
    page = section(FOUND)
    first = page.every("p")[0].text
    assert first.startswith(
        "step 30 ms -> 18 ms, 40.0 % faster (-43.0 to -37.0 %, 4 rounds of new trials), proven"
    )
    assert [one.text for one in page.every("li")] == [
        "loader-workers=4: DataLoader(..., num_workers=4, persistent_workers=True, pin_memory=True)",
        'compile=default: model.compile(mode="default")',
        "values: batch: 64",
    ]
    nothing = section(replace(FOUND, together=None))
    assert not nothing.every("li")
    assert "To keep what helped" not in nothing.text


def test_the_reports_of_the_stages_are_linked_where_there_are_stages() -> None:
    links = [(one.text, one.attributes["href"]) for one in section(FOUND).every("a")]
    assert [link for link in links if "report.html" in link[1]] == [
        ("train-experiments-1", "../train-experiments-1/report.html"),
        ("train-together-1", "../train-together-1/report.html"),
    ]
    one = section(replace(FOUND, together_run=None))
    assert [link.text for link in one.every("a") if "report.html" in link.attributes["href"]] == [
        "train-experiments-1"
    ]
    none = section(replace(FOUND, experiments_run=None, together_run=None))
    assert "Trials and reports" not in none.text


def test_names_and_reasons_stay_text() -> None:
    bad = replace(LOADER, name=BAD, said=(BAD,), explained=(BAD,), state="failed", why=BAD)
    page = section(Improvement(BAD, BAD, (bad,), ExperimentResult(BAD, state="failed", why=BAD), (BAD,), BAD))
    assert not page.every("img")
    assert not page.every("script")
    assert page.text.count(BAD) >= 5


def test_the_command_that_goes_on_is_shown() -> None:
    command = "profrun improve train-1 --variant improved"
    assert command in [one.text for one in section(replace(FOUND, improved="improved")).every("code")]
    assert "To go on" not in section(replace(FOUND, experiments=(LOADER,))).text
