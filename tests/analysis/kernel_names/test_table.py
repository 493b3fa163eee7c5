"""What the words of a kernel's own name tell."""

from __future__ import annotations

import pytest

from profrun.analysis.kernel_names.parts import words
from profrun.analysis.kernel_names.table import CATEGORIES, SCOPES, SCOPES_LAST, WORDS, by_words


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("RMSNormKernel", "norm"),
        ("rms_norm_static_fp8_quant_kernel", "norm"),  # the normalisation costs more than the quantisation
        ("TopPRenormProbKernel", "sampling"),  # a probability that is normalised again
        ("lpnorm_cleanup", "reduction"),  # the norm of a vector
        ("rotary_embedding_kernel", "elementwise"),  # no lookup
        ("embedding_backward_kernel", "indexing"),
        ("nhwcToNchwKernel", "layout"),
        ("computeWgradSplitKOffsetsKernel", "indexing"),
        ("_gemma_rms_layernorm_forward", "norm"),  # no GEMM
        ("interleave_fp4_weights_for_sm90_mixed_gemm_kernel", "layout"),  # for a GEMM
        ("compute_sm90_cutlass_group_gemm_args", None),  # prepares one
        ("concat_and_cache_mla_kernel", "indexing"),  # writes what attention reads
        ("attn_softmax_v2", "softmax"),
        ("gated_linear_attn_f32", "recurrence"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_words_of_a_name(name: str, category: str | None) -> None:
    assert by_words(words(name)) == category


def test_a_scope_decides_before_a_short_name_and_after_a_silent_one() -> None:
    assert by_words("_dispatch_", "_deep_ep_::_internode_ll_") == "collective"
    assert by_words("_transpose_", "_moe_::_dev_") == "moe"
    assert by_words("_run_", "_flashinfer_::_sampling_") == "sampling"


def test_every_row_gives_a_known_category() -> None:
    assert {category for category, _ in WORDS + SCOPES + SCOPES_LAST} <= CATEGORIES.keys()
