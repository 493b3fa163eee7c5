"""One recorded cycle of torch.profiler: start, steps, export, and torch's own table of that very profile."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import time
from typing import TYPE_CHECKING, Any

from .config import Place
from .files import write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from .config import HookConfig

FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
OURS = "_profrun_own"
_QUIET_S = 0.05


class TorchProfile:
    """Drives one torch.profiler.profile over warmup and active steps; the trace is written when it stops."""

    def __init__(self, config: HookConfig, torch: Any, warn: Callable[[str], None]) -> None:
        self.config = config
        self.torch = torch
        self._warn = warn
        self._discard = False
        self._whole = False
        self._first = 0
        self._step_range: Any = None
        self._profile = self._make()

    def start(self, step: int, *, whole: bool = False) -> None:
        """Begin before ``step``; its name in the trace is ``ProfilerStep#<step>``."""
        self._whole = whole
        self._first = step
        profile = self._profile
        profile.step_num = step
        profile.current_action = profile._prev_schedule_action = self._action(step)
        profile.record_steps = False  # torch 2.1 names each step after the one before it
        profile.start()
        self._mark(step)

    def step(self) -> None:
        """The next step begins."""
        self._unmark()
        self._profile.step()
        self._mark(self._profile.step_num)

    def stop(self) -> None:
        """End the recording and write what there is."""
        self._unmark()
        if place(self.torch).world_size > 1:
            # A thread of gloo may still be leaving a function that is recorded; torch frees the record's
            # memory when it stops, and the late write corrupts the heap (seen with torch 2.13).
            time.sleep(_QUIET_S)
        self._profile.stop()

    def discard(self) -> None:
        """End the recording and write nothing."""
        self._discard = True
        self.stop()

    def _mark(self, step: int) -> None:
        if not self._whole:
            self._step_range = self.torch.autograd.profiler.record_function(f"ProfilerStep#{step}")
            self._step_range.__enter__()

    def _unmark(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _make(self) -> Any:
        profiler = self.torch.profiler
        options = self.config.options
        flags = {name: bool(options[name]) for name in FLAGS if name in options}
        make = getattr(profiler.profile, "__wrapped_init__", None)
        arguments: dict[str, Any] = {
            "activities": self._activities(),
            "schedule": self._action,
            "on_trace_ready": self._save,
            **flags,
        }
        if make is None:
            return profiler.profile(**arguments)
        profile = profiler.profile.__new__(profiler.profile)  # exclusive.py guards the class: go past it
        setattr(profile, OURS, True)
        make(profile, **arguments)
        return profile

    def _activities(self) -> Any:
        """What this build of torch supports, or of that what was asked for (cpu, cuda, xpu, ...)."""
        supported = set(self.torch.profiler.supported_activities())
        asked = self.config.options.get("activities")
        if not asked:
            return supported
        names = {str(name).upper() for name in asked}
        if "GPU" in names or "HIP" in names:
            names.add("CUDA")  # torch's name for both vendors
        chosen = {activity for activity in supported if activity.name in names}
        lost = names - {activity.name for activity in supported} - {"GPU", "HIP"}
        if lost:
            self._warn(f"this torch cannot record {', '.join(sorted(lost)).lower()} activity")
        return chosen or supported

    def _action(self, step: int) -> Any:
        from .window import ACTIVE, WARMUP, cycle_end, label

        actions = self.torch.profiler.ProfilerAction
        if self._whole:
            return actions.RECORD
        state = label(self.config.window, step)
        if state == ACTIVE:
            return actions.RECORD_AND_SAVE if cycle_end(self.config.window, step) else actions.RECORD
        return actions.WARMUP if state == WARMUP else actions.NONE

    def _save(self, profile: Any) -> None:
        if self._discard:
            return
        folder = self.config.raw(place(self.torch).rank)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json"
        plain = folder / f"{name}.tmp"
        # torch appends nothing to the name and packs itself only when it ends in .gz, at the slowest level.
        profile.export_chrome_trace(str(plain))
        packed = folder / f"{name}.gz.partial"
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=3) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        packed.replace(folder / f"{name}.gz")
        plain.unlink()
        rows = table(profile)
        write_json(
            folder / f"{name}.gz.key_averages.json",
            {
                "format": 1,
                "trace": f"{name}.gz",
                "unit": "us",
                "torch": self.torch.__version__,
                "first_step": self._first,
                "rows": rows,
            },
        )
        self._check_gpu(profile, rows)

    def _check_gpu(self, profile: Any, rows: list[dict[str, Any]]) -> None:
        """Silent loss of all GPU events is known; say what the likely cause is."""
        torch = self.torch
        if not torch.cuda.is_available() or any(row["device"] for row in rows):
            return
        if not torch.cuda.is_initialized():
            self._warn("the torch trace has 0 GPU events: the program never used the GPU that is there")
            return
        if torch.profiler.ProfilerActivity.CUDA not in self._activities():
            self._warn("the torch trace has 0 GPU events: GPU activity was not asked for or is not supported")
            return
        holder = "rocprofv3 or another ROCm tool" if torch.version.hip else "nsys, ncu, DCGM or a debugger"
        self._warn(
            "the torch trace has 0 GPU events although the program used the GPU: another profiler probably "
            f"holds the GPU's tracing interface ({holder}), or the window held no GPU work"
        )


def table(profile: Any) -> list[dict[str, Any]]:
    """``key_averages()`` as rows; times are microseconds as torch gives them."""
    rows = []
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


def place(torch: Any) -> Place:
    """Rank and world size as torch.distributed knows them, else as the launcher's environment says."""
    found = Place.from_environ()
    distributed = getattr(torch, "distributed", None)
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return Place(int(distributed.get_rank()), found.local_rank, int(distributed.get_world_size()))
    except RuntimeError:
        pass
    return found
