"""What a process leaves behind: steps.json of its rank, and a note about itself."""

from __future__ import annotations

import os
import platform
import socket
import sys
from typing import TYPE_CHECKING, Any

from ..contract.codec import to_json
from .files import read_json, write_json
from .process_rank import current

if TYPE_CHECKING:
    from pathlib import Path

    from .session import Session


def write_steps(session: Session) -> None:
    """Write ``raw/rank<k>/steps.json`` if this process made steps.

    A second process of the same rank that makes steps writes ``steps.<pid>.json``; further passes of a
    counter collection write ``steps.pass<n>.json``.
    """
    if not len(session.clock):
        return
    folder = session.config.raw(current(session.torch).rank)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(_steps_path(folder, session), _steps(session))


def _steps_path(folder: Path, session: Session) -> Path:
    if session.config.run:
        return folder / f"steps.pass{session.config.run}.json"
    path = folder / "steps.json"
    other = read_json(path)
    if other is not None and other.get("pid") != session.pid:
        return folder / f"steps.{session.pid}.json"
    return path


def _steps(session: Session) -> dict[str, Any]:
    clock, here = session.clock, current(session.torch)
    usual = clock.clock
    rows = clock.steps()
    for row in rows:
        row["window"] = session.config.schedule.part(row["step"])
        if row["clock"] == usual:
            del row["clock"]
    return {
        "format": 1,
        "rank": here.rank,
        "local_rank": here.local_rank,
        "world_size": here.world_size,
        "pid": session.pid,
        "host": socket.gethostname(),
        "how": session.finder.how,
        "clock": usual,
        "collector": session.config.collector,
        "profiler": session.config.profiler,
        "blocking": session.config.blocking,
        "device": device(session.torch),
        "anchor": clock.anchor,
        "work": session.work,
        "steps": rows,
        "ranges_emitted": session.sink.emitted if session.sink is not None else 0,
        "emitter": _emitter(session),
        "out_of_memory": session.out_of_memory,
    }


def _emitter(session: Session) -> str | None:
    return None if session.sink is None else session.sink.emitter.name


def device(torch: Any) -> dict[str, Any] | None:
    """The current GPU of this process, named as in the trace's ``devices`` table; None without one."""
    if torch is None or not torch.cuda.is_initialized():
        return None
    ordinal = torch.cuda.current_device()
    seen = torch.cuda.get_device_properties(ordinal)
    amd = bool(getattr(torch.version, "hip", None))
    arch = str(seen.gcnArchName).split(":")[0] if amd else f"sm_{seen.major}{seen.minor}"
    return {
        "vendor": "amd" if amd else "nvidia",
        "ordinal": ordinal,
        "name": seen.name or "unknown",
        "arch": arch,
        "sm_count": seen.multi_processor_count,
        "warp_size": getattr(seen, "warp_size", None),
        "max_threads_per_sm": getattr(seen, "max_threads_per_multi_processor", None),
        "regs_per_sm": getattr(seen, "regs_per_multiprocessor", None),
        "smem_per_sm": getattr(seen, "shared_memory_per_multiprocessor", None),
        "memory_bytes": seen.total_memory,
        "uuid": str(seen.uuid) if getattr(seen, "uuid", None) is not None else None,
    }


def write_note(session: Session) -> None:
    """Say what this process was: the wrapper gathers these into provenance.json and the warnings."""
    torch, here = session.torch, current(session.torch)
    note: dict[str, Any] = {
        "pid": session.pid,
        "ppid": os.getppid(),
        "rank": here.rank,
        "argv": list(getattr(sys, "orig_argv", sys.argv)),
        "role": _role(session),
        "steps": session.finder.count,
        "how": session.finder.how,
        "used_gpu": bool(torch is not None and torch.cuda.is_initialized()),
        "warnings": to_json(session.warnings),
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": _torch_facts(torch),
    }
    folder = session.config.notes
    if session.finder.count and here.rank == 0:
        note["packages"] = packages()
    write_json(folder / f"process.{socket.gethostname()}.{session.pid}.json", note)


def _role(session: Session) -> str:
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        return "dataloader worker"
    if session.finder.count:
        return "workload"
    if "torch.distributed.run" in sys.modules or "torch.distributed.launcher" in sys.modules:
        return "launcher"
    return "forked child" if session.forked else "no steps"


def _torch_facts(torch: Any) -> dict[str, Any] | None:
    if torch is None:
        return None
    return {
        "version": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
    }


def packages() -> list[str]:
    """``name==version`` of every distribution of this interpreter, sorted: pip freeze without pip."""
    from importlib.metadata import distributions

    found = set()
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            found.add(f"{name}=={distribution.version}")
    return sorted(found, key=str.lower)
