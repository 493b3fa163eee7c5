"""One spelling for what tools write differently."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names import normalise


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
        ("triton_spl_fused_cumsum_0", "triton_spl_fused_cumsum_3"),
        ("triton_bmm_fused_1", "triton_bmm_fused_2"),
        ("triton_flex_attention_backward_1", "triton_flex_attention_backward_4"),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void e<k<float>(T&)::{lambda(int)#1}>(int)", "void e<k<double>(T&)::{lambda(int)#1}>(int)"),
        ("void e<k<float>(T&)::{lambda(int)#1}>(int)", "void e<k<float>(T&)::{lambda(int)#2}>(int)"),
        ("void e<k()::{lambda(float)#1}>(int)", "void e<k()::{lambda(long)#1}>(int)"),
        ("void s<long const*>(int)", "void s<long*>(int)"),
        ("void e<f()::{lambda()#1}>(int)", "void e<g()::{lambda()#1}>(int)"),
        (  # 0x128 in 320x128 is no address
            "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_TNT",
            "nvjet_sm90_tst_320x64_64x3_1x2_h_bz_coopB_TNT",
        ),
    ],
)
def test_what_makes_other_machine_code_stays_in_the_name(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)
