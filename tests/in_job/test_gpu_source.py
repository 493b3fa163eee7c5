"""Which calls are kept, and which GPUs a program sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.sampling import SampledSource
from profrun.in_job.gpu_source import Call, GpuReader, seen_gpus

UUIDS = ["GPU-aa11", "GPU-ab22", "GPU-cc33"]


def test_the_first_call_that_works_gives_a_quantity() -> None:
    calls: list[str] = []

    def read(name: str, *values: float | None) -> Call:
        quantities = ("energy", "power") if len(values) > 1 else ("power",)
        return Call(quantities, lambda: (calls.append(name), values)[1])  # type: ignore[arg-type, func-returns-value]

    reader = GpuReader(
        SampledSource("gpu", ()), [read("a", 5.0, None), read("b", None), read("c", 7.0), read("d", 9.0)]
    )
    assert reader.source.quantities == ("energy", "power")
    calls.clear()
    assert reader.read()[1] == [5.0, 7.0]
    assert calls == ["a", "c"]


def test_a_value_that_fails_later_is_none() -> None:
    values = iter([(1,), (None,)])
    reader = GpuReader(SampledSource("gpu", ()), [Call(("temperature",), lambda: next(values))])
    assert reader.read()[1] == [None]


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        ("0,2", [0, 2]),
        ("2,2", [2]),
        ("1,7,0", [1]),  # what follows an invalid entry does not count
        ("1,-1,0", [1]),
        ("GPU-a", []),  # the begin of two
        ("gpu-AA,GPU-cc33", [0, 2]),
        (" ", []),
        ("NoDevFiles", []),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(visible: str, seen: list[int]) -> None:
    assert seen_gpus({"CUDA_VISIBLE_DEVICES": visible}, "nvidia", UUIDS) == seen


@given(st.text(max_size=20))
def test_whatever_the_variable_holds_the_gpus_are_there(visible: str) -> None:
    seen = seen_gpus({"CUDA_VISIBLE_DEVICES": visible}, "nvidia", UUIDS)
    assert seen == sorted(set(seen) & {0, 1, 2})
