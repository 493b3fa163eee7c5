"""Two kinds of GPU beside each other."""

from __future__ import annotations

from typing import Any

from profrun.analysis.compare import compare, read_trial
from tests.analysis.kit import memory_trace, step


def test_copy_kernels_of_amd_count_like_copies_of_nvidia() -> None:
    def side(kind: str, name: str, more: dict[str, Any]) -> list[Any]:
        return [
            step(1, 0, 1000),
            ("op", "aten::copy_", 10, 100, "main"),
            ("api", "launch", 20, 10, "main"),
            (kind, name, 40, 30, "stream 7", {"launch": 2} | more),
        ]

    direction = {"copies.direction": "DtoD"}
    nvidia = read_trial(memory_trace(side("memcpy", "Memcpy DtoD (Device -> Device)", direction)))
    amd = read_trial(
        memory_trace(
            side("kernel", "__amd_rocclr_copyBuffer", {}),
            meta={"vendor": "amd"},
            device={"vendor": "amd", "name": "AMD Instinct MI300X"},
        )
    )
    found = compare([nvidia], [amd], by="category", allow=["work"])
    (row,) = found.rows
    assert (row.name, row.a_ns, row.b_ns) == ("memcpy", 30, 30)
    assert found.vendors is not None
    assert found.vendors.copies_ns == (30, 30)
    (kernel,) = found.kernels
    assert (kernel.status, kernel.by) == ("replaced", "op")
