"""A kernel name in parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.analysis.kernel_names.parts import split, words


@pytest.mark.parametrize(
    ("name", "scopes", "own", "inner"),
    [
        ("ab::cd::ef<gh::ij<1>, 2, kl>", ("ab", "cd"), "ef", ["ij", "kl"]),
        ("(anonymous namespace)::ab", (), "ab", []),
        ("ab<cd>::ef", ("ab",), "ef", []),
        ("ab", (), "ab", []),
        ("ab<cd", (), "ab", ["cd"]),  # cut
        ("_ZN2ab2cdI2efEEvv", ("ab",), "cd", ["ef"]),
        ("_ZN2ab12_GLOBAL__N_12cdEv", ("ab",), "cd", []),
        ("_Z2abv", (), "ab", []),
        ("_ZN9999ab", (), "_ZN9999ab", []),  # not mangled
        ("", (), "", []),
    ],
)
def test_parts(name: str, scopes: tuple[str, ...], own: str, inner: list[str]) -> None:
    parts = split(name)
    assert (parts.scopes, parts.own, [one.own for one in parts.inner]) == (scopes, own, inner)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RMSNormKernel", "_rms_norm_kernel_"),
        ("rms_norm_kernel", "_rms_norm_kernel_"),
        ("_topkGating2", "_topk_gating2_"),
        ("nchwToNhwcKernel", "_nchw_to_nhwc_kernel_"),
    ],
)
def test_words(name: str, expected: str) -> None:
    assert words(name) == expected


@given(st.text(alphabet="ab:<>(), _ZNIE0123{}#", max_size=60))
def test_any_text_has_parts(name: str) -> None:
    parts = split(name)
    assert split(name) == parts
    assert isinstance([one.words for one in parts.inner], list)
    assert parts.scope_words.count("::") == max(0, len(parts.scopes) - 1)
