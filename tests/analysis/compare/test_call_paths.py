"""From where work was launched: names of places, and the paths of launches."""

from __future__ import annotations

import pytest

from profrun.analysis.compare.call_paths import is_wrapper, plain


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AllToAll4D, seq = 46286, op_id = 994184", "AllToAll4D, seq = N, op_id = N"),
        ("nn.Module: layers.3.attn (Attention)", "nn.Module: layers.3.attn (Attention)"),
        ("aten::_to_copy", "aten::_to_copy"),
        (
            "autograd::engine::evaluate_function: MmBackward0",
            "autograd::engine::evaluate_function: MmBackward0",
        ),
        ("triton_poi_fused_gelu_mul_0", "triton_poi_fused_gelu_mul"),
        ("buffer 0x7f3a20 of rank 3", "buffer 0x of rank N"),
        ("iteration_12", "iteration_N"),
        ("nn.Module: Linear_7", "nn.Module: Linear"),
    ],
)
def test_names_of_places_lose_what_changes_from_run_to_run(name: str, expected: str) -> None:
    assert plain(name) == expected
    assert plain(expected) == expected


@pytest.mark.parametrize(
    "name",
    [
        "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph f6cyw5xx7a7rayr4gp4j77s4fzlmjpcua5n7umt2acvb56 ##",
        "TorchDynamo Cache Lookup",
        "ProfilerStep#4",
    ],
)
def test_what_a_compiler_or_profiler_puts_round_code_is_no_place(name: str) -> None:
    assert is_wrapper(name)
    assert not is_wrapper("aten::mm")
