"""Names as AMD's tools write them."""

from __future__ import annotations

import duckdb
import pytest

from profrun.collectors.rocprof.names import clean_kernel_sql, direction, direction_sql


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("vecCopy(double*, int) [clone .kd]", "vecCopy(double*, int)"),
        ("vecCopy(double*, int) (.kd)", "vecCopy(double*, int)"),
        ("vecCopy.kd", "vecCopy"),
        ('"vecCopy(int) [clone .kd]"', "vecCopy(int)"),
        ("kd", "kd"),
    ],
)
def test_a_kernel_name_without_what_the_tool_adds(name: str, clean: str) -> None:
    assert duckdb.execute(f"SELECT {clean_kernel_sql('$1')}", [name]).fetchall() == [(clean,)]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("MEMORY_COPY_HOST_TO_DEVICE", "HtoD"),
        ("CopyDeviceToHost", "DtoH"),
        ("hipMemcpyPeerToPeer", "PtoP"),
        ("FillBuffer", "memset"),
        ("something", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_copys_direction_in_python_and_in_sql(name: str | None, known: str) -> None:
    assert direction(name) == known
    assert duckdb.execute(f"SELECT {direction_sql('$1::VARCHAR')}", [name]).fetchall() == [(known,)]
