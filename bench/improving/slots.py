"""Programs side by side, each on cores of its own, and on GPUs of its own or in turns with others."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from programs.improve.table import Program


class RunFailed(Exception):
    """A command ended with an error, or had to be ended; the message says which, with its last words."""


@dataclass(frozen=True)
class Slot:
    """A part of the machine.

    Attributes:
        gpus: numbers of its GPUs; empty on a machine without one.
        cores: numbers of its cores.
        turn: the file that programs lock while they use the GPU; None: no other slot has it.
    """

    gpus: tuple[int, ...]
    cores: frozenset[int]
    turn: Path | None = None

    def environ(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The variables of a command that runs in it: it sees these GPUs only."""
        turn = {"BENCH_TURN": str(self.turn)} if self.turn else {}
        return {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus)), **turn, **extra}

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], limit_s: float) -> str:
        """Run a command in it to its end; returns what it prints.

        Args:
            env: variables beside those of this process.
            limit_s: seconds after which it and the processes that it started are killed.

        Raises:
            RunFailed: it failed or was killed.
        """
        process = subprocess.Popen(
            ["taskset", "--cpu-list", ",".join(map(str, sorted(self.cores))), *argv],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=cwd, env=self.environ(env), start_new_session=True,
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"was killed after {limit_s:.0f} s") from None
        finally:
            with contextlib.suppress(
                ProcessLookupError
            ):  # workers of a loader outlive a program that is killed
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode:
            raise RunFailed(f"exit code {process.returncode}: {errors.strip()[-1000:]}")
        return output


def slots(gpus: int, ranks: int = 1, share: int = 1) -> list[Slot]:
    """The machine in parts of ``ranks`` GPUs each, with equal numbers of neighbouring cores.

    Args:
        gpus: how many GPUs are used; 0: the machine is one part without a GPU.
        ranks: GPUs of a part.
        share: slots of each part with one GPU; they have cores of their own, and its GPU in turns. Parts of
            several GPUs are never shared, because their ranks would wait for each other.
    """
    cores = sorted(os.sched_getaffinity(0))
    parts = gpus // ranks if gpus else 1
    shares = share if gpus and ranks == 1 else 1
    each = len(cores) // (parts * shares) if parts else 0
    if each > 1:
        each -= each % 2  # two neighbours are often threads of one core, which stays in one slot
    turns = Path(tempfile.gettempdir(), "bench-turns") if shares > 1 else None  # of all scripts of bench
    if turns:
        turns.mkdir(exist_ok=True)
    return [
        Slot(
            tuple(range(part * ranks, (part + 1) * ranks)) if gpus else (),
            frozenset(cores[place * each : (place + 1) * each]),
            turns / f"gpu{part}" if turns else None,
        )
        for place, part in enumerate(part for part in range(parts) for _ in range(shares))
    ]


def side_by_side(
    programs: Sequence[Program],
    gpus: int,
    measure: Callable[[Program, Slot], None],
    refuse: Callable[[Program], None],
    share: int = 1,
) -> None:
    """Call ``measure`` for each program in a thread, as many at a time as there are slots for its ranks.

    Args:
        programs: those with the same number of ranks run side by side; others run after them.
        gpus, share: as for ``slots``.
        measure: is given a slot of its own.
        refuse: is called for each program that needs more GPUs than there are.
    """
    for ranks in sorted({program.ranks for program in programs}):
        these = [program for program in programs if program.ranks == ranks]
        free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        parts = slots(gpus, ranks, share)
        if not parts:
            for program in these:
                refuse(program)
            continue
        for part in parts:
            free.put(part)

        def one(program: Program, free: queue.SimpleQueue[Slot] = free) -> None:
            slot = free.get()
            try:
                measure(program, slot)
            finally:
                free.put(slot)

        with ThreadPoolExecutor(len(parts)) as threads:
            list(threads.map(one, these))
