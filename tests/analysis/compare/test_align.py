"""Which kernel stands for which: one small case a pass, and the law that no time is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.compare.align import align
from profrun.analysis.compare.compared_trial import KernelFacts, KernelGroup
from profrun.analysis.compare.matching import Match
from profrun.analysis.kernel_names import read_kernel

import pytest  # isort: skip

Spec = tuple[str, str, int, int]  # name, place 'range/op/op', calls, ns


def _group(spec: Spec) -> KernelGroup:
    name, place, calls, ns = spec
    path = tuple(part for part in place.split("/") if part)
    kinds = "".join("o" if "::" in part or part.startswith("triton_") else "r" for part in path)
    category = read_kernel(name).category
    role = "memset" if name.startswith("Memset") else "compute"
    return KernelGroup(name, category, role, path, kinds, None, False, calls, ns)


def _facts(atoms: list[KernelGroup]) -> dict[str, KernelFacts]:
    return {
        atom.name: KernelFacts(
            atom.name, atom.name, atom.category, fused_ops=read_kernel(atom.name + "_0").fused_ops
        )
        for atom in atoms
    }


def _align(a: list[Spec], b: list[Spec], samples: tuple[int, int] = (1, 1)) -> list[Match]:
    left, right = [_group(one) for one in a], [_group(one) for one in b]
    return align(left, right, samples=samples, facts=(_facts(left), _facts(right)))


def _told(groups: list[Match]) -> set[tuple[str | None, str, str]]:
    return {(group.by, "+".join(group.names[0]), "+".join(group.names[1])) for group in groups}


GEMM_A, GEMM_B = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_TNT"
TENSILE = "Cijk_Alik_Bljk_B_MT16x16x128_MI16x16x1"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(
            [("k", "f/aten::x", 2, 20)], [("k", "f/aten::y", 2, 20)], {("name", "k", "k")}, id="name"
        ),
        pytest.param(
            [(GEMM_A, "f/aten::mm", 1, 5)],
            [(GEMM_B, "f/aten::mm", 1, 5)],
            {("variant", GEMM_A, GEMM_B)},
            id="another tile and layout",
        ),
        pytest.param(
            [(GEMM_A, "aten::linear/aten::mm", 1, 5)],
            [(TENSILE, "aten::linear/aten::mm", 1, 9)],
            {("op", GEMM_A, TENSILE)},
            id="another vendor, same op",
        ),
        pytest.param(
            [("gelu_kernel", "f/aten::gelu", 1, 5), ("mul_kernel", "f/aten::mul", 1, 4)],
            [("triton_poi_fused_gelu_mul", "f/triton_poi_fused_gelu_mul", 1, 6)],
            {("fusion", "gelu_kernel+mul_kernel", "triton_poi_fused_gelu_mul")},
            id="fusion by name",
        ),
        pytest.param(
            [("triton_poi_fused_gelu_mul", "f/triton_poi_fused_gelu_mul", 1, 6)],
            [("gelu_kernel", "f/aten::gelu", 1, 5), ("mul_kernel", "f/aten::mul", 1, 4)],
            {("fusion", "triton_poi_fused_gelu_mul", "gelu_kernel+mul_kernel")},
            id="fusion undone",
        ),
        pytest.param(
            [("gelu_kernel", "f/aten::gelu", 1, 5)],
            [("triton_poi_fused_gelu_mul", "g/triton_poi_fused_gelu_mul", 1, 6)],
            {("category", "gelu_kernel", "triton_poi_fused_gelu_mul")},
            id="another place is no fusion",
        ),
        pytest.param(
            [("softmax_warp_forward", "f/aten::_softmax", 1, 5)],
            [("my_softmax_kernel", "f", 1, 3)],
            {("place", "softmax_warp_forward", "my_softmax_kernel")},
            id="place",
        ),
        pytest.param(
            [("Memset (Device)", "f/aten::mm", 1, 5)],
            [("gelu_kernel", "f/aten::gelu", 1, 3)],
            {(None, "Memset (Device)", ""), (None, "", "gelu_kernel")},
            id="a fill is no kernel",
        ),
    ],
)
def test_a_pass(a: list[Spec], b: list[Spec], expected: set[tuple[str | None, str, str]]) -> None:
    assert _told(_align(a, b)) == expected


def test_fewer_calls_of_a_kernel_stay_with_it() -> None:
    (group,) = _align([("k", "f/aten::x", 3, 30)], [("k", "f/aten::x", 2, 22)])
    assert (sum(p.calls for p in group.a), sum(p.calls for p in group.b)) == (3, 2)


def test_the_calls_that_are_gone_are_what_was_replaced() -> None:
    """Of three adds one went into a fused kernel: two are the same, one is replaced."""
    groups = _align(
        [("add_kernel", "f/aten::add", 3, 30)],
        [
            ("add_kernel", "f/aten::add", 2, 20),
            ("triton_poi_fused_add_relu", "f/triton_poi_fused_add_relu", 1, 8),
        ],
    )
    calls = {group.by: sum(piece.calls for piece in group.a) for group in groups}
    assert calls == {"name": 2, "fusion": 1}


def test_calls_and_time_are_those_of_a_step() -> None:
    (group,) = _align([("k", "", 10, 1000)], [("k", "", 6, 300)], samples=(5, 3))
    assert (group.a[0].calls, group.a[0].ns) == (2, 200)
    assert (group.b[0].calls, group.b[0].ns) == (2, 100)


NAMES = ["k", "gelu_kernel", "triton_poi_fused_gelu_mul", GEMM_A, GEMM_B, TENSILE, "Memset (Device)"]
PLACES = ["", "f", "f/aten::mm", "f/aten::gelu", "g/aten::linear/aten::mm", "f/aten::mul", "aten::gelu"]
SPECS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(PLACES), st.integers(1, 9), st.integers(0, 10**9)),
    max_size=8,
)


@given(SPECS, SPECS)
def test_groups_hold_exactly_the_work_of_both_sides(a: list[Spec], b: list[Spec]) -> None:
    groups = _align(a, b)
    for side, specs in (("a", a), ("b", b)):
        pieces = [piece for group in groups for piece in getattr(group, side)]
        assert sum(piece.ns for piece in pieces) == pytest.approx(sum(spec[3] for spec in specs))
        assert sum(piece.calls for piece in pieces) == pytest.approx(sum(spec[2] for spec in specs))
    for group in groups:
        assert (group.by is None) == (not group.a or not group.b)


@given(SPECS)
def test_the_same_work_is_matched_by_name_alone(a: list[Spec]) -> None:
    for group in _align(a, a):
        assert group.by == "name"
        assert sum(piece.ns for piece in group.a) == pytest.approx(sum(piece.ns for piece in group.b))
