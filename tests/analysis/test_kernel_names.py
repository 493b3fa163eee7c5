"""Kernel names of every library, as tools write them, and what they tell."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.kernel_names import CATEGORIES, fused_ops, normalise, read_kernel

TABLE = list(
    csv.DictReader(
        (Path(__file__).parent / "kernel_names.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t"
    )
)
NAMES = [row["name"] for row in TABLE]


@pytest.mark.parametrize("row", TABLE, ids=[name[:40] for name in NAMES])
def test_a_name_is_read(row: dict[str, str]) -> None:
    read = read_kernel(row["name"])
    tile = "x".join(str(size) for size in read.tile) if read.tile else ""
    core = "" if read.matrix_core is None else str(read.matrix_core)
    found = (read.family, read.category, read.layout or "", read.dtype or "", tile, read.arch or "", core)
    assert found == tuple(row.values())[1:]


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("triton_poi_fused_gelu_mul_0", ("gelu", "mul")),
        ("triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
         ("_unsafe_view", "add", "mean", "mul", "pow", "rsqrt")),
        ("triton_per_fused__to_copy_native_layer_norm_native_layer_norm_backward_12",
         ("_to_copy", "native_layer_norm", "native_layer_norm_backward")),
        ("triton_poi_fused_0", ()),
        ("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", ()),
    ],
)  # fmt: skip
def test_the_ops_that_inductor_fused(name: str, ops: tuple[str, ...]) -> None:
    assert fused_ops(name) == ops


def test_different_kernels_stay_different() -> None:
    assert len({normalise(name) for name in NAMES}) == len(NAMES)


@given(st.text(max_size=80))
def test_any_text_is_read_without_error_and_normalising_is_idempotent(name: str) -> None:
    read = read_kernel(name)
    assert read.category in CATEGORIES
    assert normalise(read.normalised) == read.normalised


@given(st.sampled_from(NAMES), st.integers(0, 200), st.integers(0, 200))
def test_cut_names_are_read_without_error(name: str, start: int, end: int) -> None:
    assert read_kernel(name[start:end]).category in CATEGORIES
