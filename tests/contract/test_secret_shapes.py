"""Secrets by their form: every planted kind is found, and what only looks alike stays."""

from __future__ import annotations

import re

import duckdb
import pytest

from profrun.contract.redact import Redactor
from profrun.contract.secret_shapes import SHAPES, any_shape, find_shapes
from tests.contract.planted import HEX, PLANTED, R


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_secret_is_found_and_hidden(kind: str) -> None:
    text = f"before {PLANTED[kind]} after"
    assert kind in {found.shape for found in find_shapes(text)}
    hidden = Redactor().text(text)
    assert [word for word in (R, HEX[:32], "XN4TB6H") if word in hidden] == []
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")
    assert Redactor().text(hidden) == hidden


def test_at_least_25_kinds_are_planted() -> None:
    assert len(PLANTED) >= 25
    assert set(PLANTED) <= {shape.name for shape in SHAPES}


@pytest.mark.parametrize(
    "text",
    [
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:" + "ab" * 32,
        "--tokens 128 --key-dim 64 --max-tokens 512 --tokenizer bert-base --pad-token <pad>",
        "max_tokens: 128",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off",
        "secrets: [HF_TOKEN]",
        "key: value",
        "https://github.com/a/b@main",
        "TOKENIZERS_PARALLELISM=false",
        "KeyError: 'x'",
        "rank 3 of 8 on host-3; world_size=8",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_duckdb_understands_every_pattern_as_python_does() -> None:
    with duckdb.connect() as con:
        for text in PLANTED.values():
            assert re.search(any_shape(), text, re.IGNORECASE)
            assert con.execute("SELECT regexp_matches(?, ?, 'i')", [text, any_shape()]).fetchone() == (True,)
        assert con.execute("SELECT regexp_matches('max_tokens', ?, 'i')", [any_shape()]).fetchone() == (
            False,
        )
