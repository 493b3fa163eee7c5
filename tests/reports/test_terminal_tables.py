"""Roofline, collectives and ranks of a summary, in text: there when there is something to show."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.analysis.trace.summary import summarize
from profrun.reports.terminal import summary_text
from profrun.reports.terminal_layout import Style
from tests.analysis.kit import memory_trace, sm_clocks

MM: dict[str, Any] = {
    "ops.shapes": "[[1024,1024],[1024,1024]]",
    "ops.dtypes": '["c10::BFloat16","c10::BFloat16"]',
}
MOVED = {"collectives.op": "allreduce", "collectives.bytes": 1 << 20, "collectives.group": "0"}
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def text(rows: list[Any], **options: Any) -> list[str]:
    lines = summary_text(summarize(memory_trace(rows, **options)), Style(80)).splitlines()
    assert max(map(len, lines)) <= 80
    return lines


def gemm(name: str = "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT") -> list[Any]:
    return [
        ("op", "aten::mm", 0, 50, "main", MM),
        ("api", "cudaLaunchKernel", 10, 10, "main"),
        ("kernel", name, 100, 4000, "stream 7", {"launch": 1}),
    ]


def test_the_roofline_names_its_peaks_and_shares() -> None:
    lines = text(gemm())
    at = lines.index("roofline")
    told = " ".join(lines[at + 1 : at + 4])
    assert "100.0 % of GPU time" in told
    assert "peaks of H200 SXM, dense" in told
    row = next(line for line in lines[at:] if "aten::mm" in line)
    assert row.split()[-7:] == [
        "us",
        "537",
        "54.3",
        "%",
        "1.57",
        "32.8",
        "%",
    ]  # 2 x 1024**3 / 4 us; 6 MiB / 4 us


def test_the_roofline_has_the_clock_that_ran_and_its_share() -> None:
    """At 1464 MHz, 80 % of the clock of the peak, 54.3 % of the peak are 67.8 %."""
    lines = text(gemm(), side=sm_clocks({0: 1464.0}))
    at = lines.index("roofline")
    row = next(line for line in lines[at:] if "  bf16  " in line)
    assert row.split()[-9:-3] == ["537", "54.3", "%", "1464", "67.8", "%"]
    assert "readings may be 200 ms old" in " ".join(" ".join(lines[at:]).split())


def test_an_unknown_gpu_has_rates_and_no_shares() -> None:
    lines = text(gemm(), device={"name": "Frobnicator", "sm_count": 4, "arch": None})
    at = lines.index("roofline")
    assert "the peaks of this GPU are not known" in " ".join(line.strip() for line in lines[at + 1 : at + 4])
    assert next(line for line in lines[at:] if "aten::mm" in line).split()[-4:] == ["537", "-", "1.57", "-"]


def test_collectives_of_one_rank_say_that_the_wait_is_in_the_rate() -> None:
    lines = text([("kernel", NCCL, 0, 10_000, "stream 9", {**MOVED, "collectives.group_size": 4})])
    at = lines.index("collectives")
    assert "a rank's wait for the slowest is in it" in " ".join(line.strip() for line in lines[at : at + 3])
    assert not any("no wait" in line for line in lines)
    row = lines[lines.index("", at) - 1]
    assert row.split()[-1] == "157"  # 1 MiB / 10 us x 1.5
    assert "ranks" not in lines


def test_ranks_say_who_waited_for_whom() -> None:
    moved = {**MOVED, "collectives.group_size": 2}
    lines = text([("kernel", NCCL, 0, 60_000, "r0:stream 9", moved),
                  ("kernel", NCCL, 50_000, 10_000, "r1:stream 9", moved)], ranks=2)  # fmt: skip
    assert any("no wait" in line for line in lines)
    at = lines.index("ranks")
    first = next(place for place, line in enumerate(lines) if place > at and line.split()[0] == "0")
    assert [line.split() for line in lines[first : first + 2]] == [
        [
            "0",
            "0",
            "ns",
            "60",
            "us",
            "60",
            "us",
            "50",
            "us",
            "0",
            "ns",
            "60",
            "us",
            "0",
            "ns",
            "0",
            "of",
            "1",
        ],
        [
            "1",
            "0",
            "ns",
            "10",
            "us",
            "10",
            "us",
            "0",
            "ns",
            "0",
            "ns",
            "10",
            "us",
            "50",
            "us",
            "1",
            "of",
            "1",
        ],
    ]


def test_ratios_without_steps_are_of_the_recorded_host_work() -> None:
    assert any(line.endswith("(recorded host work)") for line in text(gemm()) if "kernels run" in line)
    step = ("step", "profrun.step#1", 0, 5000, "other")
    assert any(line.endswith("(all steps)") for line in text([*gemm(), step]) if "kernels run" in line)


@pytest.mark.parametrize(
    ("columns", "device", "said"),
    [
        ({"kernels.registers": 32}, {}, "it is estimated from registers and shared memory"),
        ({}, {}, "it cannot be estimated, because registers were not recorded either"),
        ({"kernels.registers": 32}, {"sm_count": None, "arch": None}, "does not say which GPU this was"),
    ],
)
def test_what_becomes_of_a_missing_occupancy(
    columns: dict[str, Any], device: dict[str, Any], said: str
) -> None:
    sizes = {"kernels.grid_x": 1, "kernels.grid_y": 1, "kernels.grid_z": 1, **columns}
    rows = [("kernel", "gelu_kernel", 0, 10, "stream 7", sizes)]
    assert said in " ".join(line.strip() for line in text(rows, device=device))


def test_a_gpu_of_the_second_rank_has_its_own_number_and_says_whose_it_is() -> None:
    rows = [("kernel", "gelu_kernel", 0, 10, f"r{rank}:stream 7") for rank in (0, 1)]
    lines = text(rows, ranks=2, device={"ordinal": 0})
    assert any(line.startswith("GPU 0 (rank 1): ") for line in lines)


def test_nothing_to_show_shows_nothing() -> None:
    lines = text([("op", "aten::mm", 0, 50, "main")])
    assert not {"roofline", "collectives", "ranks"} & set(lines)
