"""What profrun runs under nsys, word by word. That nsys has these flags is tested in tests/real/nsys."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from profrun.collectors.nsys.wrap import not_started, nvtx_recordable, reason, wrap
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import Limits, WrapRequest
from tests.conftest import ROOT


def request(**changed: Any) -> WrapRequest:
    values: dict[str, Any] = {
        "argv": ("python", "train.py", "--lr", "0.1"),
        "schedule": Schedule(),
        "options": {},
        "out": "/run/raw/rank0",
        "tool": "/usr/bin/nsys",
        "version": (2024, 2, 3),
        "vendor": "nvidia",
    }
    return WrapRequest(**(values | changed))


def test_on_a_gpu_only_the_hooks_window_is_recorded() -> None:
    wrapped = wrap(request())
    assert wrapped.argv == (
        "/usr/bin/nsys",
        "profile",
        "--trace=cuda,nvtx,cublas,cudnn",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "--sample=none",
        "--cpuctxsw=none",
        "--cuda-graph-trace=node",
        "--trace-fork-before-exec=true",
        "--env-var=TMPDIR=/tmp",
        "--force-overwrite=true",
        "--output=/run/raw/rank0/report",
        "python",
        "train.py",
        "--lr",
        "0.1",
    )
    assert wrapped.env == {"TMPDIR": "/run/raw/rank0"}
    assert (wrapped.hook, wrapped.emitter) == ("cuda", "nvtx")
    assert wrapped.export == (
        (
            "/usr/bin/nsys",
            "export",
            "--type=sqlite",
            "--force-overwrite=true",
            "--output={file}.sqlite",
            "{file}",
        ),
        ("rm", "-rf", "/run/raw/rank0/nvidia"),
    )
    assert wrapped.expected == ("*.nsys-rep", "*.sqlite")
    assert wrapped.notes == []


def test_without_cuda_the_whole_run_is_recorded_and_said() -> None:
    """Nobody calls cudaProfilerStart there: a window would leave 'No reports were generated'."""
    wrapped = wrap(request(vendor="none"))
    assert "--trace=nvtx" in wrapped.argv
    assert not [word for word in wrapped.argv if "capture-range" in word or "cuda" in word]
    assert wrapped.hook == "none"
    assert wrapped.notes == ["nsys records the whole run: without a CUDA GPU nothing calls cudaProfilerStart"]


def test_a_run_without_steps_is_recorded_as_a_whole_up_to_the_limits() -> None:
    schedule = Schedule(max_seconds=30, max_size=1 << 30)
    wrapped = wrap(request(whole=True, schedule=schedule, options={"capture": "window"}))
    assert wrapped.argv == (
        "/usr/bin/nsys",
        "profile",
        "--trace=cuda,nvtx,cublas,cudnn",
        "--session-new=profrun",
        "--sample=none",
        "--cpuctxsw=none",
        "--cuda-graph-trace=node",
        "--trace-fork-before-exec=true",
        "--env-var=TMPDIR=/tmp",
        "--force-overwrite=true",
        "--output=/run/raw/rank0/report",
        "python",
        "train.py",
        "--lr",
        "0.1",
    )
    assert wrapped.limits == Limits(("/usr/bin/nsys", "stop", "--session=profrun"), 30.0, 1 << 30)
    assert (wrapped.hook, wrapped.emitter) == ("none", "nvtx")
    assert wrapped.notes == [
        "nsys records the run as a whole: at most 30 s from its first use of a GPU on, and at most 1 GiB"
    ]


def test_a_duration_of_its_own_replaces_the_limit_of_the_schedule() -> None:
    wrapped = wrap(request(whole=True, options={"duration": 5}, vendor="none"))
    assert {"--duration=5", "--kill=none"} <= set(wrapped.argv)
    assert wrapped.limits is not None
    assert wrapped.limits.seconds is None
    assert wrapped.notes == ["nsys records the run as a whole: at most 2 GiB"]
    assert wrap(request(options={"capture": "all"})).limits is None


def test_a_duration_may_end_before_the_steady_state_and_that_is_said() -> None:
    for schedule, options, said in (
        (Schedule("steady"), {"capture": "all", "duration": 5}, True),
        (Schedule("steady"), {"capture": "all"}, False),
        (Schedule("steady"), {}, False),
        (Schedule(), {"capture": "all", "duration": 5}, False),
    ):
        notes = wrap(request(options=options, schedule=schedule)).notes
        assert any("schedule.wait waits for the steady state" in note for note in notes) == said


@pytest.mark.parametrize(
    ("changed", "there", "not_there"),
    [
        ({"schedule": Schedule(repeat=3)}, ["--capture-range-end=repeat:3"], []),
        ({"options": {"capture": "all"}}, [], ["--capture-range=cudaProfilerApi"]),
        (
            {"options": {"capture": "all", "duration": 5, "delay": 2}},
            ["--delay=2", "--duration=5", "--kill=none"],
            [],
        ),
        ({"version": (2021, 3)}, [], ["--cuda-graph-trace=node"]),
        ({"version": (2021, 5)}, ["--cuda-graph-trace=node"], []),
        ({"version": None}, ["--cuda-graph-trace=node"], []),
        ({"options": {"gpu_metrics": "0"}}, ["--gpu-metrics-device=0"], []),
        ({"options": {"gpu_metrics": "all"}, "version": (2025, 1)}, ["--gpu-metrics-devices=all"], []),
        ({"options": {"gpu_metrics": "all"}, "vendor": "none"}, [], ["--gpu-metrics-device=all"]),
        ({"options": {"cuda_graph_trace": "graph"}}, ["--cuda-graph-trace=graph"], []),
        ({"options": {"sample": "process-tree"}}, ["--sample=process-tree"], ["--sample=none"]),
        ({"options": {"trace": ["cuda", "osrt"]}}, ["--trace=cuda,osrt"], []),
        ({"options": {"trace_fork": False}}, [], ["--trace-fork-before-exec=true"]),
        ({"options": {"args": ["--cudabacktrace=kernel"]}}, ["--cudabacktrace=kernel"], []),
        ({"options": {"tmpdir": "/scratch"}}, ["--env-var=TMPDIR=/scratch"], []),
        ({"ranks": 4}, ["--output=/run/raw/rank0/report_%h_%p"], []),
    ],
)
def test_options_and_versions(changed: dict[str, Any], there: list[str], not_there: list[str]) -> None:
    argv = wrap(request(**changed)).argv
    assert set(there) <= set(argv)
    assert not set(not_there) & set(argv)


def test_python_stacks_need_cpu_samples_and_their_payload_in_the_export() -> None:
    wrapped = wrap(request(options={"python_backtrace": "cuda"}, version=(2025, 3, 1)))
    assert wrapped.argv[:10] == (
        "/usr/bin/nsys",
        "profile",
        "--trace=cuda,nvtx,cublas,cudnn",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "--sample=process-tree",
        "--cpuctxsw=none",
        "--cudabacktrace=all:0",
        "--python-backtrace=cuda",
        "--cuda-graph-trace=node",
    )
    assert wrapped.export[0] == (
        "/usr/bin/nsys",
        "export",
        "--type=sqlite",
        "--include-blobs=true",
        "--force-overwrite=true",
        "--output={file}.sqlite",
        "{file}",
    )
    assert wrapped.finalise_s == 900
    (note,) = wrapped.notes
    assert note == (
        "python_backtrace: nsys samples the CPU, and keeps every library that the program loads (2 GiB with "
        "PyTorch), so that it ends minutes after the program"
    )
    chosen = {"sample": "system-wide", "args": ["--cudabacktrace=kernel:0"], "python_backtrace": "cuda"}
    argv = wrap(request(options=chosen, version=None)).argv
    assert {"--sample=system-wide", "--cudabacktrace=kernel:0", "--python-backtrace=cuda"} <= set(argv)
    assert "--cudabacktrace=all:0" not in argv


def test_ranges_and_samples_of_nsys_itself() -> None:
    options = {"python_sampling": True, "pytorch": ["autograd-nvtx", "functions-trace"]}
    wrapped = wrap(request(options=options, version=(2025, 3, 1)))
    assert {"--python-sampling=true", "--pytorch=autograd-nvtx,functions-trace"} <= set(wrapped.argv)
    (note,) = wrapped.notes
    assert note == (
        "pytorch: functions-trace breaks torch.compile, which then fails to import nsys_nvtx_annotations "
        "(nsys 2025.3.1, torch 2.11)"
    )
    assert wrapped.finalise_s == 120
    assert "--python-sampling=true" in wrap(request(options={"python_sampling": True})).argv


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        (
            {"options": {"python_backtrace": "cuda"}},
            "python_backtrace is left out: it needs nsys 2025.3 or newer, and this is 2024.2.3",
        ),
        (
            {"options": {"pytorch": ["autograd-nvtx"]}},
            "pytorch is left out: it needs nsys 2025.3 or newer, and this is 2024.2.3",
        ),
        (
            {"options": {"python_sampling": True}, "version": (2023, 1, 1)},
            "python_sampling is left out: it needs nsys 2024.2 or newer, and this is 2023.1.1",
        ),
        (
            {"options": {"python_backtrace": "cuda"}, "version": (2025, 3), "vendor": "none"},
            "python_backtrace is left out: there is no NVIDIA GPU",
        ),
    ],
)
def test_what_this_nsys_cannot_is_left_out_and_said(changed: dict[str, Any], note: str) -> None:
    wrapped = wrap(request(**changed))
    assert note in wrapped.notes
    assert not [word for word in wrapped.argv if word.startswith(("--py", "--cudab", "--sample=p"))]
    assert "--include-blobs=true" not in wrapped.export[0]


@pytest.mark.parametrize(
    ("log", "windowed", "says"),
    [
        ("Generated:\n    No reports were generated.\n", True, "cudaProfilerStart was never called"),
        ("Generated:\n    No reports were generated.\n", False, "found no process to trace"),
        ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", True, "one subscriber at a time"),
        ("Connection to Agent lost. This is most likely a bug.", True, "profrun resume RUN --failed"),
        ("None of the installed GPUs are supported.", True, "cannot sample metrics of this GPU"),
        ("Generated:\n    /run/report.nsys-rep\n", True, None),
    ],
)
def test_what_nsys_printed_becomes_a_reason(log: str, windowed: bool, says: str | None) -> None:
    found = reason(log, windowed=windowed)
    assert (found is None) == (says is None)
    assert says is None or says in str(found)


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("End of file\n", "End of file"),
        (
            "what: RuntimeException\n[QuadDCommon::tag_message*] = Local Endpoint is not available.",
            "[QuadDCommon::tag_message*] = Local Endpoint is not available.",
        ),
        (
            "Connection to Agent lost. This is most likely a bug. Internal reason: 'End of file'.\n",
            "Connection to Agent lost. This is most likely a bug. Internal reason: 'End of file'.",
        ),
        (
            "Session name 'profrun' is already in use.\n",
            "Session name 'profrun' is already in use.",
        ),
        ("Agent launcher failed.\n", "Agent launcher failed."),
        ("Failed to probe the process (sync)\n", "Failed to probe the process (sync)"),
        (
            "[boost::errinfo_errno_*] = 2\n[boost::errinfo_api_function_*] = sem_open\n",
            "[boost::errinfo_api_function_*] = sem_open",
        ),
        ("an End of file\n", None),
        ("Collecting data...\n", None),
    ],
)
def test_what_nsys_printed_where_it_never_started_the_program(log: str, says: str | None) -> None:
    """All but the last two were printed by nsys 2024.2.3."""
    assert not_started(log) == says


def test_a_missing_importer_is_news_only_where_no_report_came_of_it() -> None:
    """nsys prints this also where its session's own import follows and works."""
    log = "Importer error status: The importer binary and its dependencies were not found.\n"
    assert "QdstrmImporter" in str(reason(log))
    assert reason(log, reported=True) is None
    assert "one subscriber" in str(
        reason(log + "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", reported=True)
    )


def test_which_nvtx_packages_are_recorded() -> None:
    assert nvtx_recordable((0, 2, 11), (2024, 2, 3)) is True
    assert nvtx_recordable((0, 2, 17), (2024, 2, 3)) is False
    assert nvtx_recordable((0, 2, 17), (2026, 1)) is None


def test_the_module_needs_the_standard_library_only() -> None:
    """It is shipped into images that have nothing of ours."""
    code = (
        "import importlib, pathlib, sys, types\n"
        "root = types.ModuleType('_profrun'); root.__path__ = [sys.argv[1]]; sys.modules['_profrun'] = root\n"
        "for name in ('nsys', 'ncu'):\n"
        "    importlib.import_module(f'_profrun.collectors.{name}.wrap')\n"
        "assert not {m.split('.')[0] for m in sys.modules} & {'profrun', 'duckdb', 'numpy', 'msgspec'}\n"
    )
    subprocess.run([sys.executable, "-S", "-c", code, str(ROOT)], check=True, cwd="/", env={"PATH": ""})
