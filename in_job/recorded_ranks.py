"""Which ranks of a trial a profiler records (``Command.recorded``), and what is to be said of it.

A profiler inside the program is told by the hook of each process, which knows its own rank. A profiler round
the program records what its wrapper starts: one rank, or, where a launcher makes the ranks (torchrun), all
ranks of a node. Then a node is recorded whole when one of its ranks is to be recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Literal

from ..contract.finding import Finding
from ..contract.units import counted, rank_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..contract.command import Command
    from ..contract.recording import Emitter, Rank, Recorder
    from .config import HookConfig


def started_here(command: Command, own: Rank) -> range | None:
    """The ranks that this wrapper's command becomes; None: all that there are.

    Args:
        own: this wrapper among the others.
    """
    if own.world_size <= 1:
        return None
    each = max(1, command.ranks // own.world_size)
    return range(own.rank * each, (own.rank + 1) * each)


def wraps(command: Command, own: Rank) -> bool:
    """Whether a profiler round the program records what this wrapper starts."""
    here = started_here(command, own)
    return command.recorded is None or here is None or any(rank in here for rank in command.recorded)


def is_expected(command: Command, rank: int, own: Rank, *, inside: bool) -> bool:
    """Whether the profiler leaves files in the folder of a rank that this wrapper answers for.

    Args:
        inside: the profiler runs inside the program.
    """
    if inside:
        return command.recorded is None or rank in command.recorded
    return rank == own.rank and wraps(command, own)


def of_process(config: HookConfig, own: Rank) -> HookConfig:
    """The hook's orders in a process of this rank: only steps are timed where it is not to be recorded."""
    if config.recorded is None or config.hook != "in_process" or own.rank in config.recorded:
        return config
    return replace(config, hook="none", emitter=None, exclusive=False, profiler="none")


class OnlyRecorded:
    """A recorder that records nothing in a rank that is not to be recorded.

    A process that torch.distributed alone tells its rank (``torch.multiprocessing.spawn``) knows it only when
    recording begins.

    Args:
        recorder: the profiler's own.
        is_recorded: whether this process is of a rank that is to be recorded; asked when recording begins.
    """

    def __init__(self, recorder: Recorder, is_recorded: Callable[[], bool]) -> None:
        self._recorder = recorder
        self.starts_at: Literal["warmup", "active"] = recorder.starts_at
        self.names_steps = recorder.names_steps
        self.is_torch_profiler = recorder.is_torch_profiler
        self.memory_factor = recorder.memory_factor
        self.emitter: Emitter | None = recorder.emitter
        self._is_recorded = is_recorded
        self._records = False

    def start(self, step: int, *, whole: bool = False) -> None:
        """See ``Recorder.start``."""
        self._records = self._is_recorded()
        if self._records:
            self._recorder.start(step, whole=whole)

    def step(self) -> None:
        """See ``Recorder.step``."""
        if self._records:
            self._recorder.step()

    def stop(self) -> None:
        """See ``Recorder.stop``."""
        if self._records:
            self._recorder.stop()

    def discard(self) -> None:
        """See ``Recorder.discard``."""
        if self._records:
            self._recorder.discard()


def told(command: Command, own: Rank, made: Iterable[int], *, inside: bool) -> list[Finding]:
    """What rank 0 says of a trial of which not all ranks are recorded.

    Args:
        made: the ranks that were seen.
        inside: the profiler runs inside the program.
    """
    if command.recorded is None or command.collector == "none" or own.rank:
        return []
    total = max(command.ranks, own.world_size, *(rank + 1 for rank in made))
    wanted = [rank for rank in sorted(command.recorded) if rank < total]
    found = []
    if wanted:
        what = f"recorded {rank_list(wanted)} of {total}"
        found.append(Finding("ranks-recorded", "info", what, "the job names them under ranks"))
        found += _nodes(command, own, wanted, total, inside=inside)
    absent = sorted(set(command.recorded) - set(wanted))
    if absent:
        what = f"{rank_list(absent)} could not be recorded"
        why = f"the trial had {counted(total, 'rank')}"
        found.append(Finding("rank-not-there", "warning", what, why, f"name ranks below {total}"))
    return found


def _nodes(command: Command, own: Rank, wanted: Sequence[int], total: int, *, inside: bool) -> list[Finding]:
    """Said where a profiler round a launcher records more than it was asked for."""
    if inside or total <= own.world_size:
        return []
    each = total // own.world_size
    every = {node * each + i for node in {rank // each for rank in wanted} for i in range(each)}
    more = sorted(every - set(wanted))
    if not more:
        return []
    what = f"{rank_list(more)} {'is' if len(more) == 1 else 'are'} recorded, too"
    why = "the profiler wraps the launcher of a node, which starts all ranks of the node"
    return [Finding("node-recorded-whole", "info", what, why)]
