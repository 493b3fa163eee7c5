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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void f<128, true>(int*, float const*)", "void f<(int)128, (bool)1>(int *, const float *)"),
        ("vecCopy(double*, int) [clone .kd]", "vecCopy(double*, int) (.kd)"),
        (
            "void (anonymous namespace)::g<float, 4096ul>(int)",
            "void <unnamed>::g<float, (unsigned long)4096>(int)",
        ),
        ("triton_poi_fused_gelu_mul_0", "triton_poi_fused_gelu_mul_17"),
        ("h<k::{lambda(int)#1}>(int)", "h<k::[lambda(int) (instance 1)]>(int)"),
        ("__amd_rocclr_copyBuffer", "__amd_rocclr_copyBuffer.kd"),
        (  # torch, nsys: the return type and T1 of a function inside a template argument
            "void e<128, at::k<Add<float> >(at::It&, Add<float> const&)::{lambda(int)#1}>(int, at::k<Add>)",
            "void e<(int)128, void at::k<Add<float>>(at::It &, const T1 &)::[lambda(int) (instance 1)]>(T3)",
        ),
        (  # torch, nsys: the name of the call operator, a function in an unnamed namespace
            "void v<(anonymous namespace)::c(S)::{lambda()#1}::operator()() const::{lambda(float)#1}>(int)",
            "void v<<unnamed>::c(S)::[lambda() (instance 1)]::operator ()() const::{lambda(float)#1}>(T2)",
        ),
        (  # torch, nsys: const before or after the type
            "void s<long const*, std::pair<int, float> const&, equal_to<void> >(long const*)",
            "void s<const long *, const std::pair<int, float> &, equal_to<void>>(T2)",
        ),
    ],
)
def test_tools_spell_one_kernel_differently(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_different_kernels_stay_different() -> None:
    assert len({normalise(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void e<k<float>(T&)::{lambda(int)#1}>(int)", "void e<k<double>(T&)::{lambda(int)#1}>(int)"),
        ("void e<k<float>(T&)::{lambda(int)#1}>(int)", "void e<k<float>(T&)::{lambda(int)#2}>(int)"),
        ("void e<k()::{lambda(float)#1}>(int)", "void e<k()::{lambda(long)#1}>(int)"),
        ("void s<long const*>(int)", "void s<long*>(int)"),
        ("void e<f()::{lambda()#1}>(int)", "void e<g()::{lambda()#1}>(int)"),
    ],
)
def test_what_makes_other_machine_code_stays_in_the_name(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@given(st.text(max_size=80))
def test_any_text_is_read_without_error_and_normalising_is_idempotent(name: str) -> None:
    read = read_kernel(name)
    assert read.category in CATEGORIES
    assert normalise(read.normalised) == read.normalised


@given(st.sampled_from(NAMES), st.integers(0, 200), st.integers(0, 200))
def test_cut_names_are_read_without_error(name: str, start: int, end: int) -> None:
    assert read_kernel(name[start:end]).category in CATEGORIES
