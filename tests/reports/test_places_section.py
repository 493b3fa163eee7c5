"""GPU time by line in the page: the rows are those of the table, and what has no line is said."""

from __future__ import annotations

from pathlib import Path

from profrun.analysis.trace.addresses import addresses
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.line_table import place_table
from profrun.contract.denominator import STEP
from profrun.reports.places_section import places_html
from profrun.runner.places import places_of
from profrun.traces.trace import Trace
from tests.reports.documents import Node, page, parse, rows_of
from tests.reports.mapped_run import mapped_run
from tests.tracekit import make_trace

CLEAN, MAPPING = "001-default-torch-r1", "002-default-mapping-r1"


def section(root: Path, trial: str = CLEAN, *, source: bool = False) -> Node:
    run, _ = mapped_run(root)
    with Trace(run.trial(trial).trace) as trace:
        places, _ = places_of(trace, source=source)
    assert places is not None
    html = places_html(places, "t0", STEP)
    assert html is not None
    return parse(html)


def test_a_row_is_a_line_with_its_numbers_per_step(tmp_path: Path) -> None:
    document = section(tmp_path)
    rows = {row[0]: row for row in rows_of(document, "by-line")}
    gemm = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64"
    assert rows["model.py:20 forward"] == [
        "model.py:20 forward", "8", "144.0", "23.4 %", "66.7 %", "0.0 %", f"{gemm}_bwd, {gemm}",
    ]  # fmt: skip
    assert rows["model.py:21 forward"][1:6] == ["4", "6.003", "1.0 %", "0.0 %", "100.0 %"]
    modules = {row[0]: row for row in rows_of(document, "by-module")}
    assert modules["(no module)"][1:5] == ["5", "13.900", "2.3 %", "2.9 %"]
    (caption,) = [one.text for one in document.every("caption") if "line" in one.text]
    assert caption == f"GPU time by line, per step; files are in {tmp_path}/program"


def test_the_page_shows_the_exact_times_of_the_table(tmp_path: Path) -> None:
    run, _ = mapped_run(tmp_path)
    with Trace(run.trial(MAPPING).trace) as trace:
        found = addresses(trace)
        assert found is not None
        table = place_table(frame(trace), found, "line")
        document = page(trace)
    (element,) = document.every("table", data_table="by-line")
    cells = [row.every("td")[2] for row in element.every("tbody")[0].every("tr")]
    assert [float(cell.attributes["data-v"]) * table.steps for cell in cells] == [
        row.gpu_ns for row in table.rows
    ]


def test_what_has_no_line_is_said_with_its_reason_and_where_the_lines_are_from(tmp_path: Path) -> None:
    (note, *_) = section(tmp_path).every("p", class_="note")
    assert note.text.startswith("99.4 % of the GPU time has an address. The rest has none: 0.5 %: ")
    assert "replayed by a CUDA graph" in note.text
    assert f"The lines are those of trial {MAPPING}" in note.text
    (own, *_) = section(tmp_path / "again", MAPPING).every("p", class_="note")
    assert "This recording has ranges round the lines" in own.text


def test_a_line_with_its_source_in_the_page_is_a_link_to_it(tmp_path: Path) -> None:
    document = section(tmp_path, source=True)
    (table,) = document.every("table", data_table="by-line")
    links = {link.text: link.attributes["href"] for link in table.every("a")}
    assert links["model.py:20 forward"] == "#t0-source-0-20"
    ids = {f"#{one.attributes['id']}" for one in document.every("span") if "id" in one.attributes}
    assert set(links.values()) <= ids
    assert not section(tmp_path / "without").every("a")


def test_a_page_without_a_mapping_says_nothing_of_lines(tmp_path: Path) -> None:
    rows = [("step", "ProfilerStep#0", 0, 100, "main"), ("kernel", "k", 1, 2, "stream 7")]
    with make_trace(tmp_path / "t", rows) as trace:
        document = page(trace)
    assert "by line" not in document.text
    assert not document.every("table", data_table="by-line")


def test_a_mapping_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    run, _ = mapped_run(tmp_path)
    (run.trial(MAPPING).trace / "slices.parquet").write_bytes(b"torn")
    with Trace(run.trial(CLEAN).trace) as trace:
        document = page(trace)
    (found,) = document.every("section", id="t0-lines")
    assert "are not shown" in found.text
