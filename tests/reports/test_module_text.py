"""The table of modules: a screen, whose rows add up."""

from __future__ import annotations

from profrun.analysis.trace.summary import summarize
from profrun.reports.module_text import module_parts
from profrun.reports.terminal_layout import Style, lay_out
from tests.analysis.kit import Row, memory_trace, step

LAUNCH = "cudaLaunchKernel"


def blocks(count: int) -> list[Row]:
    """A model of blocks in one step; each block has 10 us of GPU work, the model 5, the optimizer 20."""
    rows: list[Row] = [step(0, 0, 100_000), ("range", "nn.Module: root (Net)", 10, 50_000, "main")]
    launches = []
    for number in range(count):
        rows.append(("range", f"nn.Module: h.{number} (Block)", 100 + 1000 * number, 500, "main"))
        rows.append(("api", LAUNCH, 110 + 1000 * number, 100, "main"))
        launches.append((len(rows) - 1, 10_000))
    rows.append(("api", LAUNCH, 40_000, 10, "main"))
    launches.append((len(rows) - 1, 5_000))
    rows += [("range", "Optimizer.step#SGD.step", 60_000, 100, "main"), ("api", LAUNCH, 60_010, 10, "main")]
    launches.append((len(rows) - 1, 20_000))
    at = 200_000
    for launch, ns in launches:
        rows.append(("kernel", "k", at, ns, "stream 7", {"launch": launch}))
        at += ns
    return rows


def screen(rows: list[Row], width: int = 80) -> list[str]:
    return lay_out(module_parts(summarize(memory_trace(rows))), Style(width)).splitlines()


def test_repeated_blocks_are_one_row_and_the_rest_is_named() -> None:
    assert screen(blocks(3)) == [
        "",
        "modules per step, GPU time",
        "  module                               calls  forward  backward   both   share",
        "  root (Net)                               1    35 us      0 ns  35 us  63.6 %",
        "    h.* x 3 (Block)                        3    30 us      0 ns  30 us  54.5 %",
        "    (own and not shown)                                           5 us   9.1 %",
        "  Optimizer.step#SGD.step (no module)                            20 us  36.4 %",
    ]


def test_host_time_is_shown_where_no_gpu_worked() -> None:
    lines = screen([row for row in blocks(2) if row[0] not in ("kernel", "api")])
    assert lines[1] == "modules per step, host time"
    assert [line.split()[0] for line in lines[3:]] == ["root", "h.*", "(own", "(no"]
    assert lines[-1].endswith("50 us  50.0 %")


def test_without_modules_there_is_no_table() -> None:
    assert screen([step(0, 0, 100)]) == []
