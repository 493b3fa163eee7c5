"""torch.profiler inside the program: the ``Recorder`` that the hook drives, and ranges as record_function.

Per recorded cycle one ``<host>_<pid>.<unix ns>.pt.trace.json.gz`` is written and, beside it, torch's own
table of that very profile. Shipped into the job: standard library only, Python 3.9.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...contract.codec import from_json
from ...contract.finding import Finding
from ...contract.steps import RUN_RANGE
from .profiler import Options

if TYPE_CHECKING:
    from ...contract.recording import RecordingContext

FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
TABLE_FORMAT = 1
_QUIET_S = 0.05
_GLOO_WAIT_S = 10.0
_GLOO = "pt_gloo_runloop"
"""Name of the threads in which torch runs gloo's collectives; the 15 characters that Linux keeps."""


def recorder(context: RecordingContext) -> TorchRecorder:
    """The recorder of this process."""
    return TorchRecorder(context)


def wait_for_gloo(patience_s: float = _GLOO_WAIT_S) -> None:
    """Until no thread of gloo runs any more, which takes long where other programs keep the CPUs busy.

    Args:
        patience_s: after so many seconds a thread that still runs works on a collective that is not done.
    """
    deadline = time.monotonic() + patience_s
    time.sleep(_QUIET_S)  # enough on an idle machine, and all there is where threads cannot be looked at
    while _gloo_runs() and time.monotonic() < deadline:
        time.sleep(_QUIET_S)


def _gloo_runs() -> bool:
    """Whether a thread of gloo in this process is on a CPU or waits for one; False where Linux's /proc is
    not there."""
    for file in Path("/proc/self/task").glob("*/stat"):
        try:
            head, _, tail = file.read_text(encoding="utf-8", errors="replace").rpartition(")")
        except OSError:  # the thread has ended
            continue
        if head.partition("(")[2] == _GLOO and tail.split()[0] != "S":
            return True
    return False


class TorchRanges:
    """torch.profiler's own ranges (``user_annotation`` in its traces)."""

    name = "torch"
    hears_record_function = True

    def __init__(self, torch: Any) -> None:
        self._make = torch.autograd.profiler.record_function

    def push(self, name: str) -> object:
        """Enter a record_function."""
        handle: object = self._make(name)
        handle.__enter__()  # type: ignore[attr-defined]
        return handle

    def pop(self, handle: Any) -> None:
        """Leave it."""
        handle.__exit__(None, None, None)


class TorchRecorder:
    """Drives one torch.profiler.profile per cycle over its warm-up and active steps."""

    starts_at: Literal["warmup", "active"] = "warmup"
    names_steps = True
    is_torch_profiler = True
    memory_factor = (
        16.0  # torch 2.13: 6 to 10 when it stops, 13 to 28 with its table (RSS, five sets of options)
    )

    def __init__(self, context: RecordingContext, options: Options | None = None) -> None:
        self.context = context
        self.torch = context.torch
        self.emitter = TorchRanges(self.torch)
        self._class = self.torch.profiler.profile
        self._class_init = self._class.__init__  # before the hook switches the program's own profilers off
        self._options = from_json(Options, context.options) if options is None else options
        self._profile: Any = None
        self._step_range: Any = None
        self._first = 0
        self._whole = False
        self._discard = False

    def start(self, step: int, *, whole: bool = False) -> None:
        """Begin before ``step``, ``ProfilerStep#<step>`` in the trace, or before the whole run."""
        self._whole = whole
        self._first = step
        self._discard = False
        self._profile = profile = self._make()
        profile.step_num = step
        profile.current_action = profile._prev_schedule_action = self._action(step)
        profile.record_steps = False  # torch 2.1 names each step after the one before it
        with self.torch.autograd.profiler.record_function(RUN_RANGE):
            pass  # the first range of a process takes milliseconds: not in the recording
        profile.start()
        self._open_step(step)

    def step(self) -> None:
        """The next step begins."""
        self._close_step()
        self._profile.step()
        self._open_step(self._profile.step_num)

    def stop(self) -> None:
        """End the recording and write what there is."""
        self._close_step()
        if self.context.rank().world_size > 1:
            # A thread of gloo may still be leaving a function that is recorded; torch frees the record's
            # memory when it stops, and the late write corrupts the heap (seen with torch 2.13).
            wait_for_gloo()
        profile, self._profile = self._profile, None
        profile.stop()

    def discard(self) -> None:
        """End the recording and write nothing."""
        self._discard = True
        self.stop()

    def _open_step(self, step: int) -> None:
        name = RUN_RANGE if self._whole else f"ProfilerStep#{step}"
        self._step_range = self.torch.autograd.profiler.record_function(name)
        self._step_range.__enter__()

    def _close_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _make(self) -> Any:
        return self._profiler(schedule=self._action, on_trace_ready=self._save)

    def _profiler(self, **given: Any) -> Any:
        """A torch.profiler.profile with the settings of this recorder."""
        profile = self._class.__new__(self._class)
        self._class_init(profile, activities=self._activities(), **self._settings(), **given)
        return profile

    def _settings(self) -> dict[str, Any]:
        """What decides how much is recorded."""
        given = ((name, getattr(self._options, name)) for name in FLAGS)
        return {name: value for name, value in given if value is not None}

    def _activities(self) -> set[Any]:
        """What this build of torch supports, or of that what was asked for (cpu, cuda, xpu)."""
        supported = set(self.torch.profiler.supported_activities())
        names = {name.upper() for name in self._options.activities or ()}
        if not names:
            return supported
        chosen = {activity for activity in supported if activity.name in names}
        lost = names - {activity.name for activity in supported}
        if lost:
            self._warn("activity-not-supported", f"this torch cannot record {_listed(lost)} activity")
        return chosen or supported

    def _action(self, step: int) -> Any:
        actions = self.torch.profiler.ProfilerAction
        if self._whole:
            return actions.RECORD
        schedule = self.context.schedule
        part = schedule.part(step)
        if part == "active":
            return actions.RECORD_AND_SAVE if schedule.ends_cycle(step) else actions.RECORD
        return actions.WARMUP if part == "warmup" else actions.NONE

    def _save(self, profile: Any) -> None:
        if self._discard:
            return
        self._saved(self._export(profile, self._name()), profile)

    def _name(self, what: str = "") -> str:
        """A name for a trace, without its folder and before it is packed."""
        words = (f"{socket.gethostname()}_{os.getpid()}", str(time.time_ns()), *([what] if what else []))
        return f"{'.'.join(words)}.pt.trace.json"

    def _export(self, profile: Any, name: str) -> str:
        """Write the trace of a profile, packed; returns the name of the file."""
        folder = self.context.folder()
        plain = folder / f"{name}.tmp"
        # torch appends nothing to the name and packs itself only when it ends in .gz, at the slowest level.
        profile.export_chrome_trace(str(plain))
        packed = folder / f"{name}.gz.partial"
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=3) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        packed.replace(folder / f"{name}.gz")
        plain.unlink()
        return f"{name}.gz"

    def _saved(self, trace: str, profile: Any) -> None:
        """The trace of this name is written: keep torch's own table of the same profile beside it."""
        rows = table(profile)
        self._save_table(self.context.folder(), trace, rows)
        self._check_gpu(rows)

    def _save_table(self, folder: Path, trace: str, rows: list[dict[str, object]]) -> None:
        document = {
            "format": TABLE_FORMAT,
            "trace": trace,
            "unit": "us",
            "torch": self.torch.__version__,
            "first_step": self._first,
            "rows": rows,
        }
        partial = folder / f"{trace}.key_averages.json.partial"
        partial.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")
        partial.replace(folder / f"{trace}.key_averages.json")

    def _check_gpu(self, rows: list[dict[str, object]]) -> None:
        """torch loses all GPU events without a word in some cases: give the likely cause."""
        torch = self.torch
        if not torch.cuda.is_available() or any(row["device"] for row in rows):
            return
        if not torch.cuda.is_initialized():
            why = "the program never used the GPU that is there"
        elif torch.profiler.ProfilerActivity.CUDA not in self._activities():
            why = "GPU activity was not asked for or is not supported"
        else:
            other = "rocprofv3 or another ROCm tool" if torch.version.hip else "nsys, ncu, DCGM or a debugger"
            why = (
                "although the program used the GPU, another profiler probably holds the GPU's tracing "
                f"interface ({other}), or the recorded steps held no GPU work"
            )
        self._warn("no-gpu-events", "the torch trace has 0 GPU events", why)

    def _warn(self, code: str, what: str, why: str = "") -> None:
        self.context.warn(Finding(code, "warning", what, why))


def table(profile: Any) -> list[dict[str, object]]:
    """``key_averages()`` as rows; times are microseconds as torch gives them."""
    rows: list[dict[str, object]] = []
    for event in profile.key_averages():
        device = "device_time_total" if hasattr(event, "device_time_total") else "cuda_time_total"
        rows.append(
            {
                "key": event.key,
                "count": event.count,
                "self_cpu": float(event.self_cpu_time_total),
                "cpu": float(event.cpu_time_total),
                "self_device": float(getattr(event, "self_" + device)),
                "device": float(getattr(event, device)),
                "flops": int(event.flops) if event.flops else None,
                "device_type": str(getattr(event.device_type, "name", event.device_type)),
                "user_annotation": bool(getattr(event, "is_user_annotation", False)),
            }
        )
    return rows


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)).lower()
