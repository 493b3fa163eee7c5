"""The table of profilers: what a vendor-neutral collector becomes, and who runs one kernel at a time."""

from __future__ import annotations

import pytest

from profrun.contract.profilers import UnknownProfilerError, become, built_in, candidates, profiler


@pytest.mark.parametrize(
    ("named", "vendor", "becomes"),
    [
        ("timeline", "nvidia", "nsys"),
        ("timeline", "amd", "rocprof"),
        ("timeline", "none", "nsys"),
        ("counters", "nvidia", "ncu"),
        ("counters", "amd", "rocprof"),
        ("counters", "none", None),
    ],
)
def test_what_a_neutral_collector_becomes(named: str, vendor: str, becomes: str | None) -> None:
    found = become(named, vendor)
    assert (found.name if found else None) == becomes


def test_what_a_collector_may_become() -> None:
    assert [found.name for found in candidates("timeline")] == ["nsys", "rocprof"]
    assert [found.name for found in candidates("counters")] == ["ncu", "rocprof"]
    assert [found.name for found in candidates("torch")] == ["torch"]


@pytest.mark.parametrize(
    ("name", "options", "serial"),
    [
        ("ncu", {}, True),
        ("rocprof", {"pmc": [["SQ_WAVES"]]}, True),
        ("rocprof", {}, False),
        ("nsys", {}, False),
    ],
)
def test_under_which_profiler_kernels_run_one_at_a_time(
    name: str, options: dict[str, object], serial: bool
) -> None:
    assert profiler(name).is_serial(options) is serial


def test_every_profiler_can_wrap() -> None:
    assert all(found.part("wrap") is not None for found in built_in())


def test_an_unknown_profiler_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownProfilerError, match=r"none, torch, nsys, ncu, rocprof.*timeline, counters"):
        profiler("vtune")
