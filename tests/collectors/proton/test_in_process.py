"""The recorder against a stand-in for triton.profiler that does what 3.6 was seen to do on an H200."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from profrun.collectors.proton.in_process import ProtonRecorder, recorder
from profrun.contract.finding import Finding
from profrun.contract.recording import CannotRecordError, Rank, RecordingContext
from profrun.contract.schedule import Schedule

SUFFIXES = {"tree": ".hatchet", "trace": ".chrome_trace"}
EMPTY = {"tree": '[{"children":[],"frame":{"name":"ROOT"},"metrics":{}},{}]', "trace": ""}
FULL = {"tree": '[{"metrics":{"count":1,"time (ns)":5}}]', "trace": '{"traceEvents":[1]}'}


class Proton(ModuleType):
    """Sessions of a pretended triton.profiler, and everything that was asked of it in order."""

    def __init__(self, *, kernels: bool = True) -> None:
        super().__init__("triton.profiler")
        self.kernels = kernels
        self.log: list[str] = []
        self.sessions: dict[int, tuple[Path, str]] = {}
        self.fails: Exception | None = None
        self.disabled = False
        self.scope = self.make_scope

    def start(self, name: str, **arguments: str | None) -> int | None:
        if self.fails is not None:
            raise self.fails
        if self.disabled:
            return None
        number = len(self.log)
        data = str(arguments["data"])
        self.sessions[number] = Path(name), data
        shown = " ".join(f"{key}={value}" for key, value in sorted(arguments.items()))
        self.log.append(f"start {shown}")
        return number

    def finalize(self, number: int) -> None:
        base, data = self.sessions.pop(number)
        self.log.append("finalize")
        text = (FULL if self.kernels else EMPTY)[data]
        base.with_name(base.name + SUFFIXES[data]).write_text(text, encoding="utf-8")

    def make_scope(self, name: str) -> SimpleNamespace:
        raise NotImplementedError


class Scope:
    """``proton.scope`` that logs."""

    log: list[str]

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Scope:
        self.log.append(f"enter {self.name}")
        return self

    def __exit__(self, *_error: object) -> None:
        self.log.append(f"exit {self.name}")


Made = tuple[ProtonRecorder, list[Finding], list[str]]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Made]:
    """Makes a recorder; with it come its findings and the log of waits for the GPU and of calls of Proton."""

    def made(proton: Proton | None, schedule: Schedule | None = None, **options: str) -> Made:
        package = ModuleType("triton")
        monkeypatch.setitem(sys.modules, "triton", package)
        monkeypatch.setitem(sys.modules, "triton.profiler", proton)
        log = [] if proton is None else proton.log
        if proton is not None:
            package.profiler = proton  # type: ignore[attr-defined]
            monkeypatch.setattr(Scope, "log", log, raising=False)
            proton.scope = Scope  # type: ignore[assignment]
        cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=lambda: log.append("sync"))
        findings: list[Finding] = []
        context = RecordingContext(
            torch=SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda="13.0", hip=None)),
            schedule=(schedule or Schedule(wait=1, warmup=2, active=2)).steps(),
            options=options,
            rank=Rank,
            folder=lambda: tmp_path,
            warn=findings.append,
        )
        return recorder(context), findings, log

    return made


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


REAL = "start backend=cupti context=shadow data=trace hook=triton"


def test_a_cycle_is_one_session_with_the_gpu_idle_at_both_ends(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    one, findings, log = make(Proton())
    assert one.starts_at == "active"
    one.start(3)
    one.step()
    one.stop()
    assert log == ["sync", REAL, "sync", "finalize"]
    assert (files(tmp_path), findings) == ([".chrome_trace"], [])


def test_each_cycle_leaves_a_file_of_its_own(make: Callable[..., Made], tmp_path: Path) -> None:
    one, _, _ = make(Proton(), Schedule(wait=0, warmup=1, active=1, repeat=2), data="tree")
    for step in (1, 3):
        one.start(step)
        one.stop()
    assert files(tmp_path) == [".hatchet", ".hatchet"]
    assert all(FULL["tree"] == path.read_text() for path in tmp_path.iterdir())


def test_options_are_handed_on(make: Callable[..., Made]) -> None:
    one, _, log = make(Proton(), context="python", hook="none")
    one.start(0, whole=True)
    assert log == ["sync", "start backend=cupti context=python data=trace hook=None"]


@pytest.mark.parametrize(("data", "named"), [("trace", False), ("tree", True)])
def test_only_a_trace_has_a_scope_for_each_step(make: Callable[..., Made], data: str, named: bool) -> None:
    assert make(Proton(), data=data)[0].names_steps is named


def test_stopping_what_was_never_started_does_nothing(make: Callable[..., Made], tmp_path: Path) -> None:
    one, findings, log = make(Proton())
    one.stop()
    one.discard()
    assert (log, files(tmp_path), findings) == ([], [], [])


def test_what_is_discarded_leaves_no_file(make: Callable[..., Made], tmp_path: Path) -> None:
    one, findings, log = make(Proton())
    one.start(3)
    one.discard()
    assert log[-1] == "finalize"
    assert (files(tmp_path), findings) == ([], [])


@pytest.mark.parametrize("data", ["trace", "tree"])
def test_a_recording_without_kernels_is_a_finding_and_no_file(
    make: Callable[..., Made], tmp_path: Path, data: str
) -> None:
    one, findings, _ = make(Proton(kernels=False), data=data)
    one.start(3)
    one.stop()
    assert files(tmp_path) == []
    assert [finding.code for finding in findings] == ["no-kernels"]


def test_ranges_are_scopes(make: Callable[..., Made]) -> None:
    one, _, log = make(Proton())
    assert one.emitter is not None
    outer = one.emitter.push("outer")
    one.emitter.pop(one.emitter.push("inner"))
    one.emitter.pop(outer)
    assert log == ["enter outer", "enter inner", "exit inner", "exit outer"]


def test_pythons_call_stack_has_no_place_for_ranges(make: Callable[..., Made]) -> None:
    assert make(Proton(), context="python")[0].emitter is None


def test_why_it_cannot_start_is_said(make: Callable[..., Made]) -> None:
    proton = Proton()
    one, _, _ = make(proton)
    proton.fails = RuntimeError("Failed to execute cuptiSubscribe with error 39")
    with pytest.raises(CannotRecordError, match=r"cuptiSubscribe with error 39; let no other profiler run"):
        one.start(1)
    proton.fails, proton.disabled = None, True
    with pytest.raises(CannotRecordError, match=r"TRITON_PROTON_DISABLE"):
        one.start(1)


def test_an_image_without_triton_is_said(make: Callable[..., Made]) -> None:
    with pytest.raises(CannotRecordError, match=r"cannot be imported"):
        make(None)[0].start(1)


def test_amd_is_left_to_protons_own_choice(make: Callable[..., Made]) -> None:
    one, _, log = make(Proton())
    one.context.torch.version = SimpleNamespace(cuda=None, hip="7.0")
    one.start(1)
    assert log == ["sync", "start backend=None context=shadow data=trace hook=triton"]
