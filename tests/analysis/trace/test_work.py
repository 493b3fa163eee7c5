"""FLOPs, peaks, roofline, occupancy, memory and ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import pytest

from profrun.analysis.trace.flops import flops_of
from profrun.analysis.trace.memory import allocating_ops, memory
from profrun.analysis.trace.occupancy import Floats, estimate_occupancy
from profrun.analysis.trace.op_cost import cost_of
from profrun.analysis.trace.ops import operators
from profrun.analysis.trace.peak_page import page
from profrun.analysis.trace.peaks import NOT_CONFIRMED, peaks_for, table
from profrun.analysis.trace.ranks import compare_ranks
from profrun.analysis.trace.roofline import roofline
from profrun.errors import UsageError
from profrun.traces.schema import DeviceRow
from profrun.traces.trace import Trace
from tests.analysis.kit import H200, memory_trace, step
from tests.analysis.rules.cases import comm
from tests.conftest import ROOT

BF16 = ["c10::BFloat16", "c10::BFloat16"]


@pytest.mark.parametrize(
    ("name", "shapes", "flops"),
    [
        ("aten::mm", [[2, 3], [3, 5]], 60),
        ("aten::bmm", [[7, 2, 3], [7, 3, 5]], 420),
        ("aten::addmm", [[5], [2, 3], [3, 5], [], []], 60),
        ("aten::baddbmm", [[7, 2, 5], [7, 2, 3], [7, 3, 5]], 420),
        ("aten::add", [[4, 4], [4], []], 16),
        ("aten::mul", [[4, 4], [4, 4]], 16),
        ("aten::mm", [[2, 3], [4, 5]], None),
        ("aten::mm", [], None),
        ("aten::mm", [[], []], None),
        ("aten::relu", [[4, 4]], None),
    ],
)
def test_flops_are_counted_as_torch_does(name: str, shapes: list[object], flops: int | None) -> None:
    assert flops_of(name, shapes) == flops


def test_flops_of_a_convolution_need_its_arguments() -> None:
    shapes = [[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]
    assert (
        flops_of("aten::conv2d", shapes, ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"])
        == 2 * 36 * 4 * 3 * 9
    )
    assert flops_of("aten::conv2d", shapes) is None


@pytest.mark.parametrize(
    ("name", "shapes", "types", "size"),
    [
        ("aten::mm", [[2, 3], [3, 5]], BF16, 2 * (6 + 15 + 10)),
        ("aten::addmm", [[5], [2, 3], [3, 5], [], []], ["float"] * 3 + ["Scalar"] * 2, 4 * (5 + 6 + 15 + 10)),
        ("aten::mm", [[2, 3], [3, 5]], [], None),
        ("aten::add", [[4, 4], [4], []], ["float", "float", "Scalar"], 4 * (16 + 4 + 16)),
        ("aten::add_", [[4, 4], [4, 4], []], ["float", "float", "Scalar"], 4 * 48),
        ("aten::copy_", [[8], [8], []], ["float", "c10::BFloat16", "Scalar"], 8 * (4 + 2)),
        ("aten::fill_", [[8], []], ["float", "Scalar"], 32),
        ("aten::mean", [[8, 4], [], [], []], ["float", "ScalarList", "Scalar", ""], 128),
        ("aten::index_select", [[1000, 4], [], [2]], ["float", "Scalar", "long int"], None),
        ("aten::nll_loss_forward", [[8, 1000], [8]], ["float", "long int"], None),
        ("triton_poi_fused_add_0", [[8], [8], [8]], ["float"] * 3, 96),
        ("triton_poi_fused_embedding_0", [[1000, 8], [4]], ["float", "long int"], None),
        ("vllm::unified_attention_with_output", [[8, 8, 64]] * 4, ["c10::BFloat16"] * 4, None),
    ],
)  # fmt: skip
def test_bytes_are_what_an_op_must_move(
    name: str, shapes: list[object], types: list[str], size: int | None
) -> None:
    assert cost_of(name, shapes, types).bytes == size


HEADS, SEQUENCE = [2, 4, 8, 16], [2, 8, 4, 16]
ONE = 2 * 4 * 8 * 16


@pytest.mark.parametrize(
    ("name", "shapes", "flops", "tensors"),
    [
        ("aten::_scaled_dot_product_flash_attention", [HEADS] * 3, 4 * ONE * 8, 4),
        ("aten::_cudnn_attention_forward", [HEADS] * 3 + [[]], 4 * ONE * 8, 4),
        ("aten::_flash_attention_forward", [SEQUENCE] * 3 + [[], []], 4 * ONE * 8, 4),
        ("aten::_efficient_attention_forward", [SEQUENCE] * 3, 4 * ONE * 8, 4),
        ("aten::_flash_attention_backward", [SEQUENCE] * 5, 10 * ONE * 8, 8),
        ("aten::_cudnn_attention_backward", [HEADS] * 5 + [[2, 4, 8, 1]], 10 * ONE * 8, 8),
    ],
)
def test_attention_by_either_order_of_its_dimensions(
    name: str, shapes: list[object], flops: int, tensors: int
) -> None:
    cost = cost_of(name, shapes, ["c10::Half"] * len(shapes))
    assert (cost.flops, cost.bytes) == (flops, tensors * ONE * 2)


def test_attention_over_a_longer_sequence_counts_the_keys() -> None:
    query, keys = [2, 4, 8, 16], [2, 4, 32, 16]
    cost = cost_of("aten::_scaled_dot_product_cudnn_attention_backward", [query, query, keys, keys], BF16)
    assert cost.flops == 10 * ONE * 32
    assert cost_of("aten::_flash_attention_forward", [[16, 4, 8]] * 3, BF16).flops is None  # packed: no batch


def test_what_comes_from_caches_has_no_share_of_the_memory() -> None:
    """1 MiB in and out in 100 ns: 21 TB/s, over the 4.8 of an H200."""
    columns = {"ops.shapes": "[[512,512],[]]", "ops.dtypes": '["float","Scalar"]'}
    trace = memory_trace([
        ("op", "aten::relu", 0, 50, "main", columns),
        ("api", "cudaLaunchKernel", 10, 10, "main"),
        ("kernel", "vectorized_elementwise_kernel", 100, 100, "stream 7", {"launch": 1}),
    ])  # fmt: skip
    (row,) = roofline(trace).rows
    assert row.tb_s == pytest.approx(2 * 512 * 512 * 4 / 100 / 1e3)
    assert (row.cached, row.memory_share, row.bound, row.limit_share) == (True, None, None, None)


@pytest.mark.parametrize("name", ["h200/torch/train.json.gz", "h200/torch/transformer.json.gz"])
def test_no_share_of_a_peak_is_over_one(name: str, real: Callable[..., Trace]) -> None:
    for row in roofline(real(name)).rows:
        for share in (row.compute_share, row.memory_share, row.limit_share):
            assert share is None or share <= 1


def test_the_roofline_of_one_matrix_multiply_by_hand() -> None:
    trace = memory_trace(
        [
            ("op", "aten::mm", 0, 20, "main",
             {"ops.shapes": "[[4096, 4096], [4096, 4096]]",
              "ops.dtypes": '["c10::BFloat16", "c10::BFloat16"]'}),
            ("api", "cuLaunchKernelEx", 5, 5, "main"),
            ("kernel", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", 50, 200_000, "stream 7",
             {"launch": 1}),
        ]
    )  # fmt: skip
    found = roofline(trace)
    (row,) = found.rows
    assert row.flops == 2 * 4096**3
    assert row.tflops == pytest.approx(687.19, abs=0.01)  # 137 438 953 472 FLOP in 200 us
    assert row.intensity == pytest.approx(4096 / 3)
    assert (row.peak_tflops, row.peak_tb_s, row.bound) == (989.4, 4.8, "compute")
    assert row.compute_share == pytest.approx(687.19 / 989.4, abs=1e-4)
    assert row.limit_share == row.compute_share
    assert found.covered_ns == found.total_ns == 200_000
    half = roofline(trace, peaks={"bf16": 494.7}).rows[0]
    assert half.compute_share == pytest.approx(2 * 687.19 / 989.4, abs=1e-4)


def test_an_unknown_gpu_keeps_everything_but_the_peaks() -> None:
    trace = memory_trace(
        [
            ("op", "aten::mm", 0, 20, "main",
             {"ops.shapes": "[[64, 64], [64, 64]]", "ops.dtypes": '["float", "float"]'}),
            ("api", "cudaLaunchKernel", 5, 5, "main"), ("kernel", "k", 50, 1000, "stream 7", {"launch": 1}),
        ],
        device={"name": "Frobnicator 9"},
    )  # fmt: skip
    found = roofline(trace)
    assert found.peaks == {0: None}
    assert (found.rows[0].peak_tflops, found.rows[0].bound) == (None, None)
    assert found.rows[0].tflops is not None


def test_achieved_rates_on_the_h200_stay_under_the_peaks(real: Callable[..., Trace]) -> None:
    for name in ("matmul_add_4096", "mlp", "transformer_optim"):
        found = roofline(real(f"h200/torch/{name}.json.gz"))
        for row in found.rows:
            assert row.compute_share is None or row.compute_share < 1.0
        best = max(row.compute_share or 0 for row in found.rows)
        assert best > 0.4


def test_peaks_have_sources_and_are_dense() -> None:
    for gpu in table().values():
        assert gpu.source
        assert gpu.memory_gb_s > 0
        if {"bf16", "tf32"} <= set(gpu.tflops):
            assert gpu.tflops["bf16"] / gpu.tflops["tf32"] == pytest.approx(2, rel=0.05)
        if {"bf16", "fp8"} <= set(gpu.tflops):
            assert gpu.tflops["fp8"] / gpu.tflops["bf16"] == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize(
    ("name", "mhz", "units", "flops_a_clock"),
    [
        ("Tesla V100-SXM2-32GB", 1530, 640, 128), ("Tesla T4", 1590, 320, 128),
        ("NVIDIA A100-SXM4-80GB", 1410, 432, 512), ("NVIDIA H200", 1830, 528, 1024),
        ("AMD Instinct MI210", 1700, 104, 1024), ("AMD Instinct MI250X", 1700, 110, 1024),
        ("AMD Instinct MI300X", 2100, 304, 2048), ("AMD Instinct MI325X", 2100, 304, 2048),
        ("AMD Instinct MI350X", 2200, 256, 4096), ("AMD Instinct MI355X", 2400, 256, 4096),
    ],
)  # fmt: skip
def test_half_precision_follows_from_clock_and_units(
    name: str, mhz: int, units: int, flops_a_clock: int
) -> None:
    """Tensor cores (NVIDIA) or CUs (AMD), and dense FLOPs a clock of each."""
    found = peaks_for(name)
    assert found is not None
    assert found.tflops["fp16"] == pytest.approx(mhz * units * flops_a_clock / 1e6, rel=0.005)


def test_the_page_of_peaks_is_made_from_the_table() -> None:
    assert page() == (ROOT / "docs/peaks.md").read_text(encoding="utf-8"), (
        "run `python -m profrun.analysis.trace.peak_page docs`"
    )
    assert all(gpu.confirmed for gpu in table().values())
    assert NOT_CONFIRMED in page()


@pytest.mark.parametrize(
    ("name", "bf16"),
    [
        ("NVIDIA H200", 989.4), ("NVIDIA H100 80GB HBM3", 989.4), ("NVIDIA H100 PCIe", 756.0),
        ("NVIDIA B200", 2250.0), ("NVIDIA GB200", 2500.0),
        ("NVIDIA A100-SXM4-80GB", 312.0), ("AMD Instinct MI300X VF", 1307.4), ("AMD Instinct MI250X", 191.5),
        ("AMD Instinct MI355X", 2516.6), ("Tesla V100-SXM2-32GB", None),
    ],
)  # fmt: skip
def test_names_as_drivers_write_them(name: str, bf16: float | None) -> None:
    found = peaks_for(name)
    assert found is not None
    assert found.tflops.get("bf16") == bf16


def test_overrides_of_peaks() -> None:
    found = peaks_for("NVIDIA H200", overrides={"bf16": 800, "memory_gb_s": 4000})
    assert found is not None
    assert (found.tflops["bf16"], found.memory_gb_s, found.overridden) == (800, 4000, ("bf16", "memory_gb_s"))
    own = peaks_for("Frobnicator", overrides={"bf16": 10, "memory_gb_s": 100})
    assert own is not None
    assert own.ridge == {"bf16": 100.0}
    with pytest.raises(UsageError, match="no memory bandwidth"):
        peaks_for("Frobnicator", overrides={"bf16": 10})
    with pytest.raises(UsageError, match="not a positive number"):
        peaks_for("NVIDIA H200", overrides={"bf16": -1})


def occupancy(device: Mapping[str, object], *columns: Sequence[float]) -> Floats:
    """``estimate_occupancy`` of columns given as lists."""
    row = {**dict.fromkeys(DeviceRow.__annotations__), **device}
    return estimate_occupancy(cast("DeviceRow", row), *(np.array(one, float) for one in columns))


def test_occupancy_by_hand() -> None:
    # 128 threads and 64 registers on an SM of 2048 threads and 64 K registers: registers allow 8 blocks =
    # 1024
    many, few, none = occupancy(H200, [10_000, 132, 10], [128, 128, 128], [64, 64, np.nan], [0, 0, 0])
    assert many == pytest.approx(0.5)
    assert few == pytest.approx(128 / 2048)  # one block per SM
    assert np.isnan(none)
    # 100 KiB of shared memory per block: two blocks per SM
    assert occupancy(H200, [10_000], [256], [32], [100 * 1024])[0] == pytest.approx(512 / 2048)
    assert np.isnan(occupancy(H200 | {"arch": None}, [1], [128], [64], [0])[0])


def test_occupancy_estimates_agree_with_kinetos_own(real: Callable[..., Trace]) -> None:
    """kineto prints whole per cent of the same formula, and 0 for kernels with much dynamic shared memory."""
    trace = real("h200/torch/train.json.gz")
    rows = trace.sql(
        "SELECT grid_x * grid_y * grid_z, block_x * block_y * block_z, registers, "
        "coalesce(smem_static, 0) + coalesce(smem_dynamic, 0), est_occupancy FROM kernels WHERE "
        "est_occupancy > 0"
    ).rows
    assert len(rows) > 600
    mine = occupancy(H200, *([row[place] for row in rows] for place in range(4)))
    assert np.abs(mine - np.array([row[4] for row in rows])).max() <= 0.0101


def test_occupancy_on_amd_needs_registers() -> None:
    device = {"vendor": "amd", "arch": "gfx942", "sm_count": 304, "max_threads_per_sm": 2048}
    known, unknown = occupancy(device, [100_000, 1000], [256, 256], [128, np.nan], [0, 0])
    assert known == pytest.approx(0.5)  # 512 / 128 = 4 of 8 waves per SIMD
    assert np.isnan(unknown)


def test_memory_peak_and_who_allocated() -> None:
    counters = [(5, 100.0), (15, 300.0), (25, 1100.0), (35, 200.0)]
    side = {
        "tracks": [{"track": 9, "kind": "counter", "process": 0, "device": 0, "name": "memory"}],
        "counters": [
            {"track": 9, "ts_ns": ts, "name": "allocated", "value": value, "unit": "byte"}
            for ts, value in counters
        ],
    }
    trace = memory_trace(
        [("op", "aten::empty", 10, 10, "main"), ("op", "aten::mm", 20, 20, "main"),
         ("op", "aten::empty", 22, 6, "main")],
        side=side,
    )  # fmt: skip
    (peak,) = memory(trace)
    assert (peak.peak_bytes, peak.at_ns, peak.ops, peak.records) == (1100, 25, ("aten::empty",), 4)
    assert peak.capacity_bytes == H200["memory_bytes"]
    assert [(row.name, row.allocated_bytes, row.freed_bytes) for row in allocating_ops(trace)] == [
        ("aten::empty", 1000, 0), ("aten::mm", 0, 900)]  # fmt: skip
    assert {row.name: row.device_memory_bytes for row in operators(trace)} == {
        "aten::empty": 1000,
        "aten::mm": -100,
    }


def test_without_memory_records_the_columns_are_none() -> None:
    trace = memory_trace([("op", "aten::mm", 0, 5, "main")])
    assert operators(trace)[0].device_memory_bytes is None
    assert memory(trace) == []


def test_who_waits_for_whom_by_hand() -> None:
    report = compare_ranks([memory_trace(comm(60_000, 10_000), ranks=2)])
    assert report is not None
    first, second = report.ranks
    assert (first.waited_ns, first.waited_for_ns, first.last) == (50_000, 0, 0)
    assert (second.waited_ns, second.waited_for_ns, second.last) == (0, 50_000, 1)
    (skew,) = report.collectives
    assert (skew.latency_ns, skew.wait_ns, skew.skew_max_ns) == (10_000, 50_000, 50_000)
    assert skew.alg_gb_s == pytest.approx((1 << 20) / 10_000)
    assert skew.bus_gb_s == skew.alg_gb_s  # 2 (n - 1) / n = 1 for two ranks
    assert report.imbalance == pytest.approx(140 / 115 - 1)


def test_clocks_of_two_files_are_compared_only_on_one_host() -> None:
    one = memory_trace(comm(60_000, 10_000)[:4])
    columns = {"collectives.op": "allreduce", "collectives.group": "0"}
    rows = [("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 7, 10_000, "stream 9", columns)]
    other = memory_trace(rows, meta={"epoch_ns": None})
    report = compare_ranks([one, other])
    assert report is not None
    assert report.matched == 1
    assert not report.clocks_comparable
    assert report.collectives[0].skew_max_ns is None


def test_one_rank_has_nothing_to_compare() -> None:
    assert compare_ranks([memory_trace([step(0, 0, 10)])]) is None
