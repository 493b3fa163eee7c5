"""A file that is normalised twice gives the same trace, ids included: threads must not number the records."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.schema import TABLES
from tests.conftest import shared_data

pytestmark = pytest.mark.thorough

FILES = (
    "amd/rocprofv3-csv-strix-halo-llamacpp/decode_stall_counter_collection.csv",
    "amd/rocprofv1-hpctraining/seismic-stencils/results.csv",
    "amd/rocprof-compute-vcopy/MI200/pmc_perf.csv",
    "amd/rocpd-batched-gemm-mi300x/bmm/37ca13315e70/21_results.db",
)


@pytest.mark.parametrize("name", FILES)
def test_twice_the_same(name: str, tmp_path: Path) -> None:
    path = shared_data(name)
    for number in range(3):
        normalize([path], tmp_path / str(number))
    for table in TABLES:
        rows = [
            duckdb.execute(f"SELECT * FROM '{tmp_path / str(number) / table}.parquet'").fetchall()
            for number in range(3)
        ]
        assert rows[0] == rows[1] == rows[2], table
