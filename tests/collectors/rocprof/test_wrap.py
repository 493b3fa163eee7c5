"""The commands for each ROCm, word by word."""

from __future__ import annotations

import re
from typing import Any

import pytest

from profrun.collectors.rocprof import profiler
from profrun.collectors.rocprof.wrap import SINCE, reason, rocm, wrap
from profrun.contract.wrapping import Wrapped, WrapRequest
from tests.standins.rocprofv3 import FLAGS, build_parser


def _wrap(version: tuple[int, ...] | None = (7, 1, 1), tool: str = "rocprofv3", **more: Any) -> Wrapped:
    options = more.pop("options", {})
    request = WrapRequest(
        argv=("python", "train.py", "--steps", "8"),
        schedule=more.pop("schedule", None) or _schedule(),
        options=options,
        out="/run/raw/rank0",
        tool=tool,
        version=version,
        vendor="amd",
        **more,
    )
    return wrap(request)


def _schedule() -> Any:
    from profrun.contract.schedule import Schedule

    return Schedule()


APP = "-- python train.py --steps 8"
TRACE = "--kernel-trace --hip-trace --marker-trace --memory-copy-trace"


@pytest.mark.parametrize(
    ("version", "command"),
    [
        ((6, 2, 4), f"rocprofv3 --output-format csv -d /run/raw/rank0 {TRACE} {APP}"),
        ((6, 3, 1), f"rocprofv3 --output-format csv -d /run/raw/rank0 {TRACE} {APP}"),
        ((6, 4, 3), f"rocprofv3 --output-format csv -d /run/raw/rank0 {TRACE} {APP}"),
        ((7, 0, 2), f"rocprofv3 --output-format rocpd -d /run/raw/rank0 {TRACE} --selected-regions {APP}"),
        ((7, 1, 1), f"rocprofv3 --output-format rocpd -d /run/raw/rank0 {TRACE} --selected-regions {APP}"),
        ((7, 2, 4), f"rocprofv3 --output-format rocpd -d /run/raw/rank0 {TRACE} --selected-regions {APP}"),
        (None, f"rocprofv3 --output-format rocpd -d /run/raw/rank0 {TRACE} --selected-regions {APP}"),
    ],
)
def test_default_trace(version: tuple[int, ...] | None, command: str) -> None:
    wrapped = _wrap(version)
    assert " ".join(wrapped.argv) == command
    assert wrapped.hook == "roctx"
    assert wrapped.emitter == "roctx"
    assert wrapped.passes == ()
    assert "-o" not in wrapped.argv


@pytest.mark.parametrize(
    ("version", "expected"),
    [((6, 4), "**/*_trace.csv"), ((7, 0), "**/*_results.db"), (None, "**/*_results.db")],
)
def test_expected_files(version: tuple[int, ...] | None, expected: str) -> None:
    assert _wrap(version).expected == (expected,)


EVERYTHING = ["kernel", "hip", "marker", "memory-copy", "rccl", "memory-allocation", "scratch-memory", "hsa"]


@pytest.mark.parametrize(
    ("version", "missing"),
    [((6, 2), {"rccl", "memory-allocation"}), ((6, 3), {"rccl"}), ((6, 4), set()), ((7, 2), set())],
)
def test_trace_kinds_a_release_does_not_know_are_left_out_and_said(
    version: tuple[int, int], missing: set[str]
) -> None:
    wrapped = _wrap(version, options={"trace": EVERYTHING})
    flags = [word for word in wrapped.argv if word.endswith("-trace")]
    assert flags == [f"--{kind}-trace" for kind in EVERYTHING if kind not in missing]
    said = {note.split(" is left out")[0] for note in wrapped.notes if "is left out" in note}
    assert said == missing


def test_counter_groups_are_runs_of_their_own() -> None:
    options = {"pmc": [["SQ_WAVES", "SQ_BUSY_CYCLES"], ["TCC_HIT_sum"]], "kernels": "gemm.*"}
    wrapped = _wrap(options=options)
    tail = f"--marker-trace --kernel-include-regex gemm.* --selected-regions {APP}"
    assert " ".join(wrapped.argv) == (
        f"rocprofv3 --output-format rocpd -d /run/raw/rank0/pass1 --pmc SQ_WAVES SQ_BUSY_CYCLES {tail}"
    )
    assert [" ".join(item) for item in wrapped.passes] == [
        f"rocprofv3 --output-format rocpd -d /run/raw/rank0/pass2 --pmc TCC_HIT_sum {tail}"
    ]
    assert any("serialise" in note for note in wrapped.notes)


def test_one_group_needs_no_folder_of_its_own() -> None:
    wrapped = _wrap((6, 4), options={"pmc": [["SQ_WAVES"]]})
    assert " ".join(wrapped.argv) == (
        f"rocprofv3 --output-format csv -d /run/raw/rank0 --pmc SQ_WAVES --marker-trace {APP}"
    )
    assert wrapped.expected == ("**/*_counter_collection.csv",)


def test_rocm_62_takes_no_counters_on_its_command_line() -> None:
    wrapped = _wrap((6, 2), options={"pmc": [["SQ_WAVES"]]})
    assert "--pmc" not in wrapped.argv
    assert any("pmc is left out" in note for note in wrapped.notes)


def test_ranks_have_folders_by_their_own_variable() -> None:
    argv = _wrap(ranks=8).argv
    assert argv[argv.index("-d") + 1] == "/run/raw/rank0/rank%env{RANK}%"


def test_formats() -> None:
    assert "csv" in _wrap((7, 1), options={"output_format": "csv"}).argv
    assert _wrap((7, 1), options={"output_format": "json"}).expected == ("**/*_results.json",)
    older = _wrap((6, 4), options={"output_format": "rocpd"})
    assert "csv" in older.argv
    assert any("does not write rocpd" in note for note in older.notes)


@pytest.mark.parametrize(
    ("version", "form"), [((6, 2, 4), "csv"), ((6, 4, 3), "csv"), ((7, 0, 2), "rocpd"), ((7, 2, 4), "rocpd")]
)
def test_a_run_without_steps_is_recorded_from_its_start_and_the_hook_ends_it_at_a_limit(
    version: tuple[int, ...], form: str
) -> None:
    wrapped = _wrap(version, whole=True)
    assert " ".join(wrapped.argv) == f"rocprofv3 --output-format {form} -d /run/raw/rank0 {TRACE} {APP}"
    assert (wrapped.hook, wrapped.emitter, wrapped.limits) == ("roctx", "roctx", None)
    (note,) = (note for note in wrapped.notes if "as a whole" in note)
    assert "at most 10 s and 2 GiB" in note
    counted = _wrap(version, whole=True, options={"pmc": [["SQ_WAVES"]]}).argv
    assert "--marker-trace" in counted  # roctxProfilerPause is not heard without it


@pytest.mark.parametrize(
    ("version", "tool", "said"),
    [
        ((6, 4, 3), "rocprofv3", "the files grow as long as schedule.wait waits"),
        ((7, 2, 4), "rocprofv3", ""),
        ((6, 1), "rocprof", "only says which of the recorded steps count"),
    ],
)
def test_what_cannot_wait_for_the_steady_state_says_so(
    version: tuple[int, ...], tool: str, said: str
) -> None:
    from profrun.contract.schedule import STEADY, Schedule

    for schedule, whole in ((Schedule(), False), (Schedule(STEADY), True), (Schedule(STEADY), False)):
        notes = " ".join(_wrap(version, tool=tool, schedule=schedule, whole=whole).notes)
        waits = schedule.wait == STEADY and not whole
        assert ("schedule.wait" in notes) == (bool(said) and waits)
        assert not waits or said in notes


def test_selected_regions_always_come_with_markers() -> None:
    """Releases before spring 2026 hear roctxProfilerResume only with --marker-trace."""
    for options in ({"trace": ["kernel"]}, {"pmc": [["SQ_WAVES"]]}):
        argv = _wrap(options=options).argv
        assert "--selected-regions" in argv
        assert "--marker-trace" in argv


def test_further_arguments_stand_before_the_command() -> None:
    argv = _wrap(options={"args": ["--agent-index=type-relative"]}).argv
    assert argv.index("--agent-index=type-relative") < argv.index("--")


def test_rocprof_v1() -> None:
    wrapped = _wrap((6, 1), tool="/opt/rocm/bin/rocprof")
    assert " ".join(wrapped.argv) == (
        "/opt/rocm/bin/rocprof --hip-trace --roctx-trace --timestamp on -o /run/raw/rank0/results.csv "
        "python train.py --steps 8"
    )
    assert wrapped.hook == "none"
    assert "results.db" in wrapped.expected
    assert any("to its end" in note for note in wrapped.notes)
    more = _wrap((6, 1), tool="rocprof", options={"trace": ["hsa", "rccl"], "pmc": [["SQ_WAVES"]]}, ranks=2)
    assert "--hsa-trace" in more.argv
    assert sum("left out" in note for note in more.notes) == 2
    assert any("one rank with each" in note for note in more.notes)


@pytest.mark.parametrize(
    ("stated", "release"),
    [
        ((7, 2, 4), (7, 2)),
        ((6, 3), (6, 3)),
        ((1, 0, 0), (7, 0)),
        ((0, 5, 0), (6, 3)),
        ((1, 9, 9), (7, 2)),
        ((7,), (7, 0)),
        ((), None),
        (None, None),
    ],
)
def test_release_from_either_version_number(stated: tuple[int, ...] | None, release: Any) -> None:
    assert rocm(stated) == release


@pytest.mark.parametrize("release", sorted(FLAGS))
@pytest.mark.parametrize("windowed", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"trace": list(profiler.TRACE)},
        {"pmc": [["A", "B"], ["C"]], "kernels": "x"},
        {"output_format": "json"},
    ],
    ids=["default", "every kind", "counters", "json"],
)
def test_the_tool_of_that_release_knows_every_flag(
    release: tuple[int, int], windowed: bool, options: dict[str, Any]
) -> None:
    """The stand-in's tables are written from the documentation of each release, not from wrap.SINCE."""
    wrapped = _wrap(release, options=options, whole=not windowed)
    for argv in (wrapped.argv, *wrapped.passes):
        split = argv.index("--")
        parsed = build_parser(release).parse_args(list(argv[1:split]))
        assert parsed.output_directory.startswith("/run/raw/rank0")
        assert argv[split + 1 :] == ("python", "train.py", "--steps", "8")


def test_reasons() -> None:
    assert "two copies" in str(reason("ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED"))
    assert "roctxProfilerResume was never called" in str(reason(""))
    assert reason("", windowed=False) is None
    assert reason("", reported=True) is None


def test_versions_are_stated_for_flags_and_for_rocpd() -> None:
    assert all(re.match(r"^(--[a-z-]+|rocpd)$", flag) for flag in SINCE)
