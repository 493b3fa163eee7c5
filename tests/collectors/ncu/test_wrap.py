"""What profrun runs under ncu, word by word. The flags were checked against ``ncu --help`` of 2025.3.1."""

from __future__ import annotations

from typing import Any

import pytest

from profrun.collectors.ncu.wrap import reason, wrap
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest


def request(**changed: Any) -> WrapRequest:
    values: dict[str, Any] = {
        "argv": ("python", "train.py"),
        "schedule": Schedule(),
        "options": {},
        "out": "/run/raw/rank0",
        "tool": "ncu",
        "version": (2025, 3, 1),
        "vendor": "nvidia",
    }
    return WrapRequest(**(values | changed))


def test_the_hooks_window_is_profiled_with_the_clocks_left_alone() -> None:
    wrapped = wrap(request())
    assert wrapped.argv == (
        "ncu",
        *("--target-processes", "all", "--clock-control", "none", "--set", "basic"),
        *("--profile-from-start", "off", "--force-overwrite", "--export", "/run/raw/rank0/report"),
        *("python", "train.py"),
    )
    assert (wrapped.hook, wrapped.emitter, wrapped.expected) == ("cuda", "nvtx", ("*.ncu-rep",))
    assert wrapped.export == (
        (
            *("env", "LC_ALL=C", "ncu", "--import", "{file}", "--csv", "--page", "raw"),
            *("--print-units", "base", "--rename-kernels", "0", "--log-file", "{file}.csv"),
        ),
    )
    assert "clock control: none" in wrapped.notes


def test_older_versions_do_not_know_the_flag_for_whole_names() -> None:
    assert "--rename-kernels" not in wrap(request(version=(2024, 1, 1))).export[0]
    assert "--rename-kernels" not in wrap(request(version=None)).export[0]


@pytest.mark.parametrize(
    ("changed", "there"),
    [
        ({"options": {"set": "full"}}, ("--set", "full")),
        ({"options": {"sections": ["SpeedOfLight", "Occupancy"]}}, ("--section", "Occupancy")),
        ({"options": {"metrics": ["a.sum", "b.avg"]}}, ("--metrics", "a.sum,b.avg")),
        ({"options": {"ranges": ["forward"]}}, ("--nvtx", "--nvtx-include", "forward/")),
        (
            {"options": {"ranges": ["nn.Module: mlp, [0] (Linear/x)"]}},
            ("--nvtx-include", r"nn.Module: mlp\, \[0\] (Linear\/x)/"),
        ),
        ({"options": {"kernels": "gemm|nvjet"}}, ("--kernel-name", "regex:gemm|nvjet")),
        ({"options": {"launch_skip": 5, "launch_count": 7}}, ("--launch-skip", "5", "--launch-count", "7")),
        ({"whole": True}, ("--launch-count", "100")),
        ({"options": {"clock_control": "base"}}, ("--clock-control", "base")),
        ({"options": {"replay_mode": "application"}}, ("--replay-mode", "application")),
        ({"options": {"cache_control": "none"}}, ("--cache-control", "none")),
        ({"options": {"graph_profiling": "graph"}}, ("--graph-profiling", "graph")),
        ({"ranks": 2}, ("--kernel-name", "regex:^(?!ncclDevKernel|ncclKernel)")),
        ({"ranks": 2}, ("--export", "/run/raw/rank0/report_%h_%p")),
    ],
)
def test_options(changed: dict[str, Any], there: tuple[str, ...]) -> None:
    argv = wrap(request(**changed)).argv
    places = [at for at in range(len(argv)) if argv[at : at + len(there)] == there]
    assert len(places) == 1


def test_a_set_is_not_added_to_sections_or_metrics() -> None:
    assert "--set" not in wrap(request(options={"sections": ["Occupancy"]})).argv
    assert "--set" not in wrap(request(options={"metrics": ["a.sum"]})).argv
    assert "--set" in wrap(request(options={"metrics": ["a.sum"], "set": "basic"})).argv


def test_without_a_window_launches_are_bounded_and_it_is_said() -> None:
    wrapped = wrap(request(whole=True))
    assert "--profile-from-start" not in wrapped.argv
    assert "ncu profiles the first 100 kernel launches of the run: it is recorded as a whole" in wrapped.notes


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "may not read GPU counters"),
        ("==WARNING== No kernels were profiled.", "between cudaProfilerStart and cudaProfilerStop"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "profiling library"),
        ("==PROF== Report: /run/report.ncu-rep", None),
    ],
)
def test_what_ncu_printed_becomes_a_reason(log: str, says: str | None) -> None:
    found = reason(log)
    assert (found is None) == (says is None)
    assert says is None or says in str(found)
