"""Numbers and names that nsys writes."""

from __future__ import annotations

import re

import duckdb
import pytest

from profrun.collectors.nsys.names import API_VERSION_PATTERN, COLLECTIVE_PATTERN, COPY_DIRECTIONS, case
from profrun.traces.schema import DIRECTIONS


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz", "cudaLaunchKernel"),
        ("cudaMemcpyAsync_v3020_ptsz", "cudaMemcpyAsync"),
        ("cudaLaunchKernel", "cudaLaunchKernel"),
        ("cuMemcpyHtoD_v2", None),
    ],
)
def test_the_version_of_an_api_call(name: str, without: str | None) -> None:
    found = re.match(API_VERSION_PATTERN, name)
    assert (found[1] if found else None) == without


def test_the_collective_of_a_kernel() -> None:
    assert re.findall(COLLECTIVE_PATTERN, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)") == ["AllReduce"]


def test_a_case_of_sql() -> None:
    sql = case("k", {1: "HtoD", 2: "DtoH"}, "'unknown'")
    rows = duckdb.execute(f"SELECT {sql} FROM (VALUES (1), (2), (9), (NULL)) t(k)").fetchall()
    assert [row[0] for row in rows] == ["HtoD", "DtoH", "unknown", "unknown"]


def test_every_direction_is_one_of_the_format() -> None:
    assert set(COPY_DIRECTIONS.values()) <= set(DIRECTIONS)
