"""Names as AMD's tools write them, made comparable: kernel suffixes, copy directions, host names."""

from __future__ import annotations

KERNEL_SUFFIX = r"(\.kd)?( \[clone \.kd\]| \(\.kd\))?$"
"""What rocprof v1, v2 and rocprofv3 add to a kernel's name."""


def clean_kernel_sql(column: str) -> str:
    """SQL for a kernel name without the tool's suffixes and v1's literal quotes."""
    unquoted = f"regexp_replace({column}, '^\"(.*)\"$', '\\1', 's')"
    return f"regexp_replace({unquoted}, '{KERNEL_SUFFIX}', '')"


_DIRECTIONS = (
    ("HOST_TO_DEVICE", "HtoD"),
    ("DEVICE_TO_HOST", "DtoH"),
    ("DEVICE_TO_DEVICE", "DtoD"),
    ("HOST_TO_HOST", "HtoH"),
    ("HOSTTODEVICE", "HtoD"),
    ("DEVICETOHOST", "DtoH"),
    ("DEVICETODEVICE", "DtoD"),
    ("HOSTTOHOST", "HtoH"),
    ("PEERTOPEER", "PtoP"),
    ("FILLBUFFER", "memset"),
    ("MEMSET", "memset"),
)


def direction(name: str | None) -> str:
    """Copy direction (``schema.DIRECTIONS``) from any tool's operation name; 'unknown' when it has none."""
    upper = (name or "").upper()
    return next((value for key, value in _DIRECTIONS if key in upper), "unknown")


def direction_sql(column: str) -> str:
    """``direction`` as SQL."""
    cases = " ".join(f"WHEN contains(upper({column}), '{key}') THEN '{value}'" for key, value in _DIRECTIONS)
    return f"CASE {cases} ELSE 'unknown' END"
