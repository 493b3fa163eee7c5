"""What a process leaves behind: steps.json and results.json of its rank, and a note about itself."""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ..contract.codec import to_json
from ..contract.finding import Finding
from ..contract.provenance import Process, TorchVersion
from ..contract.results import ResultsFile
from ..contract.steps import StepsDevice, StepsFile
from .files import read_json, write_json
from .gpu_idle import wait_until_idle
from .private_values import private_of, redactor
from .process_note import ProcessNote
from .process_rank import current
from .vendor import host_ordinal

if TYPE_CHECKING:
    from pathlib import Path

    from ..contract.results import ResultKind
    from ..contract.steps import StepSign, StepTime
    from .hook_process import HookProcess
    from .ranges import Ranges
    from .step_follower import StepFollower
    from .torch_types import Torch
    from .whole_run import WholeRun

_FLUSH_NS = 2_000_000_000
_FLUSH_SHARE = 500  # a flush may take this fraction of the time between two of them


class ProcessFiles:
    """Writes the files of one process.

    Attributes:
        due_ns: when the steps so far are to be written next, ``time.perf_counter_ns``.
    """

    def __init__(self, process: HookProcess, steps: StepFollower, ranges: Ranges, run: WholeRun) -> None:
        self.process = process
        self.steps = steps
        self.ranges = ranges
        self.run = run
        self.due_ns = time.perf_counter_ns() + _FLUSH_NS

    def flush(self) -> None:
        """Keep the steps so far in case the process is killed, at most 1/500 of the time."""
        began = time.perf_counter_ns()
        self.steps.timer.read()
        try:
            self.write_steps()
        except OSError as error:
            what = f"step times could not be kept during the run: {error}"
            self.process.warn(Finding("step-times-not-kept", "warning", what))
        done = time.perf_counter_ns()
        self.due_ns = done + max(_FLUSH_NS, (done - began) * _FLUSH_SHARE)

    def put_off(self) -> None:
        """Recording begins: no file is written in its first steps, whose time would be the file's."""
        self.due_ns = max(self.due_ns, time.perf_counter_ns() + _FLUSH_NS)

    def write_steps(self) -> None:
        """Write ``raw/rank<k>/steps.json`` if this process made steps.

        A second process of the same rank that makes steps writes ``steps.<pid>.json``; further passes of a
        counter collection write ``steps.pass<n>.json``.
        """
        if not len(self.steps.timer):
            return
        folder = self.process.config.paths.rank(current(self.process.torch).rank)
        folder.mkdir(parents=True, exist_ok=True)
        times = self.steps.timer.steps(self.process.schedule)
        write_json(self._steps_path(folder), to_json(self._steps(self.steps.finder.how, times)))

    def write_note(self) -> None:
        """Say what this process was: the wrapper reads it for provenance.json and the warnings."""
        process, count = self.process, self.steps.finder.count
        hide = redactor(private_of(process.config.paths.folder), os.environ)
        torch, rank = process.torch, current(process.torch).rank
        note = ProcessNote(
            process=Process(
                pid=process.pid,
                ppid=os.getppid(),
                rank=rank,
                role=self._role(),
                steps=count,
                used_gpu=self.run.used_gpu or wait_until_idle(torch),
                executable=sys.executable,
                argv=hide.arguments(getattr(sys, "orig_argv", sys.argv)),
            ),
            python=platform.python_version(),
            torch=_torch_version(torch),
            packages=tuple(packages()) if count and rank == 0 else (),
            warnings=tuple(process.warnings),
            run=self._run(),
            cpu_ns=time.process_time_ns(),
        )
        name = f"process.rank{process.config.wrapper}.{socket.gethostname()}.{process.pid}.json"
        write_json(process.config.paths.hook / name, to_json(note))

    def write_results(
        self, kind: ResultKind, values: tuple[float | None, ...], spacing: float | None
    ) -> None:
        """Write ``raw/rank<k>/results.json``: what this process computed first.

        Helpers of the program (launchers, DataLoader workers) write none, and neither do further passes of a
        counter collection, which compute the same. A second process of the same rank that has values writes
        ``results.<pid>.json``; one without values only says so where nobody else has written.
        """
        if self.process.config.run or self.run.role() is not None:
            return
        rank = current(self.process.torch).rank
        path = self.process.config.paths.results(rank)
        other = read_json(path)
        if kind == "none" and (other is not None or self.process.forked):
            return
        if other is not None and other.get("kind") != "none":
            path = path.with_name(f"results.{self.process.pid}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, to_json(ResultsFile(rank, kind, values, spacing)))

    def _steps_path(self, folder: Path) -> Path:
        config, pid = self.process.config, self.process.pid
        if config.run:
            return folder / f"steps.pass{config.run}.json"
        path = folder / "steps.json"
        other = read_json(path)
        return path if other is None or other.get("pid") == pid else folder / f"steps.{pid}.json"

    def _run(self) -> StepsFile | None:
        """The run as one step; None where steps were seen, and where this process has no run of its own."""
        began_ns, dur_ns, config = self.run.began_ns, self.run.dur_ns, self.process.config
        if began_ns is None or dur_ns is None or config.run or self.run.role() is not None:
            return None
        run = self._steps("run", (self.steps.timer.whole(began_ns, dur_ns),))
        return replace(run, profiler_start_ns=self.run.start_ns)

    def _steps(self, how: StepSign, times: tuple[StepTime, ...]) -> StepsFile:
        process, config, timer = self.process, self.process.config, self.steps.timer
        here = current(process.torch)
        return StepsFile(
            rank=here.rank,
            pid=process.pid,
            how=how,
            clock=timer.clock,
            anchor=timer.anchor,
            local_rank=here.local_rank,
            world_size=here.world_size,
            host=socket.gethostname(),
            collector=config.collector,
            profiler=config.profiler,
            blocking=config.blocking,
            device=device(process.torch),
            work=process.work,
            steps=times,
            ranges_emitted=self.ranges.emitted,
            emitter=self.ranges.emitter,
            out_of_memory=process.out_of_memory,
        )

    def _role(self) -> str:
        helps = self.run.role()
        if self.steps.finder.count and helps != "dataloader worker":
            return "workload"
        return helps or ("forked child" if self.process.forked else "no steps")


def device(torch: Torch) -> StepsDevice | None:
    """The current GPU of this process; None without one."""
    if torch is None or not torch.cuda.is_initialized():
        return None
    ordinal = torch.cuda.current_device()
    seen = torch.cuda.get_device_properties(ordinal)
    amd = bool(getattr(torch.version, "hip", None))
    return StepsDevice(
        vendor="amd" if amd else "nvidia",
        ordinal=ordinal,
        name=seen.name or "unknown",
        arch=str(seen.gcnArchName).split(":")[0] if amd else f"sm_{seen.major}{seen.minor}",
        sm_count=seen.multi_processor_count,
        warp_size=getattr(seen, "warp_size", None),
        max_threads_per_sm=getattr(seen, "max_threads_per_multi_processor", None),
        regs_per_sm=getattr(seen, "regs_per_multiprocessor", None),
        smem_per_sm=getattr(seen, "shared_memory_per_multiprocessor", None),
        memory_bytes=seen.total_memory,
        uuid=str(seen.uuid) if getattr(seen, "uuid", None) is not None else None,
        host_ordinal=host_ordinal(os.environ, "amd" if amd else "nvidia", ordinal),
    )


def _torch_version(torch: Torch) -> TorchVersion | None:
    if torch is None:
        return None
    return TorchVersion(str(torch.__version__), torch.version.cuda, getattr(torch.version, "hip", None))


def packages() -> list[str]:
    """``name==version`` of every distribution of this interpreter, sorted: pip freeze without pip."""
    from importlib.metadata import distributions

    found = set()
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            found.add(f"{name}=={distribution.version}")
    return sorted(found, key=str.lower)
