"""The values of a collector's ``wrap``: shipped into the job, so stdlib only and Python 3.9.

Every collector room has a ``wrap.py`` with::

    TOOL: str | None                         # executable looked for on the PATH, None when there is none
    def wrap(request: WrapRequest) -> Wrapped    # pure: no file, no process, no environment is touched
    KEEPS_ENVIRONMENT = True                 # where its files hold the program's environment, secrets too
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Window:
    """Steps: the hook skips ``skip_first``, then ``repeat`` times waits, warms up and records ``active``."""

    wait: int = 1
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    skip_first: int = 0


@dataclass(frozen=True)
class WrapRequest:
    """What a collector is asked to wrap.

    Attributes:
        argv: the user's command.
        window: which steps to record.
        options: the collector's block of the job spec.
        out: folder for this rank's files as the job sees it; exists and is empty.
        tool: path of the profiler, or its bare name when unknown (dry run away from the job).
        version: its version as numbers, e.g. (2024, 2, 3); None when unknown.
        vendor: nvidia, amd or none.
        ranks: processes of the trial in total.
        ranges: module depth of automatic ranges (0: none).
        steps_found: False when no window can be driven (ranges.steps: off): record everything.
    """

    argv: tuple[str, ...]
    window: Window
    options: Mapping[str, Any]
    out: str
    tool: str
    version: tuple[int, ...] | None = None
    vendor: str = "none"
    ranks: int = 1
    ranges: int = 0
    steps_found: bool = True


@dataclass(frozen=True)
class Wrapped:
    """What to run instead.

    Attributes:
        argv: the whole command.
        env: variables to set, over the trial's own.
        hook: what the hook inside must do at the window's edges: 'torch', 'cuda' (cudaProfilerStart/Stop),
            'roctx' (roctxProfilerResume/Pause), 'none' (time steps only).
        emitter: which range emitter the hook must use: 'nvtx', 'torch', 'roctx' or None.
        finalise_s: how long the tool may need to write after the app ended, seconds.
        export: commands to run afterwards in the job, e.g. nsys export; '{file}' stands for each report.
        expected: globs, relative to ``out``, of what must be there afterwards.
        passes: further argvs to run one after another (rocprofv3 --pmc groups), else empty.
        notes: what was degraded or chosen, in words.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    hook: str = "none"
    emitter: str | None = None
    finalise_s: float = 30.0
    export: tuple[tuple[str, ...], ...] = ()
    expected: tuple[str, ...] = ()
    passes: tuple[tuple[str, ...], ...] = ()
    notes: list[str] = field(default_factory=list)
