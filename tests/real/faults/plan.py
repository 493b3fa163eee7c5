"""From a seed to one fault: which job is disturbed where, when and how. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Backend = Literal["local", "docker", "slurm"]
Phase = Literal["planned", "starting", "recording", "finalising", "normalising", "reporting"]
PHASES: tuple[Phase, ...] = (
    "planned",
    "starting",
    "recording",
    "finalising",
    "normalising",
    "reporting",
)
"""What a run is doing. ``planned``: its folder is being made; ``starting``: from ``queued`` until the program
runs; ``recording``: the program runs; ``finalising``: it has ended and ``exit.json`` is not there yet;
``normalising``: from ``exit.json`` until the next trial; ``reporting``: from the event ``done`` on."""

LONGEST_S: dict[Phase, float] = {
    "planned": 0.15,
    "starting": 0.25,
    "recording": 0.9,
    "finalising": 0.1,
    "normalising": 0.15,
    "reporting": 0.4,
}
"""The longest delay after the beginning of a phase, in seconds: about as long as the phase lasts."""

Act = Literal[
    # signals
    "KILL",
    "TERM",
    "INT",
    "HUP",
    "STOP",
    "CONT",
    # limits of a process: no file of it can grow; it can open no further one
    "no-growth",
    "no-files",
    # what is under the run's folder
    "disk-full",
    "EIO",
    "ENOSPC",
    # the clock of driver, wrapper and program
    "clock-forward",
    "clock-back",
    # a second profrun on the folder; another version of profrun on it
    "resume",
    "cancel",
    "cancel-now",
    "rm",
    "report",
    "old-status",
    "old-resume",
    "old-submit",
    # nothing: what an undisturbed run looks like
    "nothing",
]
SIGNALS: tuple[Act, ...] = ("KILL", "TERM", "INT", "HUP", "STOP", "CONT")
SECOND: tuple[Act, ...] = ("resume", "cancel", "cancel-now", "rm", "report")
OLD: tuple[Act, ...] = ("old-status", "old-resume", "old-submit")


@dataclass(frozen=True)
class Shape:
    """A kind of job that is disturbed.

    Attributes:
        backend: what carries it out.
        collector: the only collector of the job.
        trials: how many trials it has.
        steps: how many steps each trial counts.
        ranks: processes of the program; more than one: a launcher starts them.
        victims: part of the run -> phases in which it lives.
        weight: how often it is chosen, relative to the others.
        detached: the run is driven by a process of its own.
    """

    backend: Backend
    collector: str
    trials: int
    steps: int
    ranks: int
    victims: dict[str, tuple[Phase, ...]]
    weight: float
    detached: bool = False


_WRAPPER: tuple[Phase, ...] = ("starting", "recording", "finalising")
_LOCAL: dict[str, tuple[Phase, ...]] = {
    "driver": PHASES,
    "wrapper": _WRAPPER,
    "sampler": ("recording",),
    "program": ("recording",),
}
_LATER: tuple[Phase, ...] = PHASES[1:]
SHAPES: dict[str, Shape] = {
    "steps": Shape("local", "none", 2, 12, 1, _LOCAL, 50),
    "detached": Shape("local", "none", 2, 12, 1, {**_LOCAL, "driver": _LATER}, 12, detached=True),
    "ranks": Shape("local", "none", 2, 12, 2, {**_LOCAL, "rank": ("recording",)}, 12),
    "torchrun": Shape("local", "none", 1, 12, 2, {**_LOCAL, "rank": ("recording",)}, 2),
    "nsys": Shape(
        "local",
        "nsys",
        1,
        12,
        1,
        {
            **_LOCAL,
            "tool": ("recording", "finalising"),
            "launcher": ("recording",),
            "agent": ("recording",),
        },
        14,
    ),
    "torch": Shape("local", "torch", 1, 12, 1, _LOCAL, 2),
    "docker": Shape(
        "docker",
        "none",
        2,
        12,
        1,
        {"driver": _LATER, "container": ("recording",), "engine": ("recording",), "program": ("recording",)},
        4,
    ),
    "slurm": Shape(
        "slurm",
        "none",
        2,
        12,
        1,
        {
            "driver": _LATER,
            "wrapper": ("recording",),
            "program": ("recording",),
            "slurmstepd": ("recording",),
            "batch": ("recording",),
        },
        4,
    ),
    "srun": Shape(
        "slurm",
        "none",
        1,
        12,
        2,
        {
            "driver": _LATER,
            "wrapper": ("recording",),
            "rank": ("recording",),
            "slurmstepd": ("recording",),
            "srun": ("recording",),
        },
        3,
    ),
}


@dataclass(frozen=True)
class Blow:
    """One act, and the seconds before it since the last one (of the first: since the phase began)."""

    act: Act
    after_s: float


@dataclass(frozen=True)
class Fault:
    """One disturbed run.

    Attributes:
        shape: name in ``SHAPES``.
        victim: the part that is hit; ``folder``: the run's folder; ``clock``: the clock.
        phase: the phase that is waited for, of trial number ``trial``.
        blows: what is done then, in order.
        pick: from 0 to 1; which process, where the victim has several, and which write of the folder fails.
        asks: whether ``status``, ``report`` and ``logs`` are called while the run is disturbed.
    """

    seed: int
    shape: str
    victim: str
    phase: Phase
    trial: int
    blows: tuple[Blow, ...]
    pick: float
    asks: bool


def plan(seed: int, backends: Sequence[Backend] = ("local",)) -> Fault:
    """The fault of a seed.

    Args:
        backends: what is there to be disturbed. Other backends give other faults for the same seed.
    """
    draw = random.Random(f"fault {seed} {','.join(backends)}")
    names = [name for name, shape in SHAPES.items() if shape.backend in backends]
    (name,) = draw.choices(names, [SHAPES[name].weight for name in names])
    shape = SHAPES[name]
    (kind,) = draw.choices(_KINDS, _weights(shape))
    victim, phase, blows = _KIND[kind](draw, shape)
    return Fault(
        seed=seed,
        shape=name,
        victim=victim,
        phase=phase,
        trial=draw.randrange(shape.trials) if phase != "planned" else 0,
        blows=blows,
        pick=round(draw.random(), 4),
        asks=draw.random() < 0.25,
    )


_KINDS = ("signal", "storm", "limit", "disk", "write", "clock", "second", "version")


def _weights(shape: Shape) -> list[float]:
    """How often each of ``_KINDS`` is chosen; other engines than this machine are only sent signals."""
    if shape.backend != "local":
        return [80, 10, 0, 0, 0, 0, 10, 0]
    if shape.detached:
        return [60, 20, 5, 0, 0, 0, 15, 0]
    return [48, 12, 8, 6, 8, 4, 10, 4]


Draw = tuple[str, Phase, tuple[Blow, ...]]


def _place(draw: random.Random, victims: dict[str, tuple[Phase, ...]]) -> tuple[str, Phase, float]:
    """A victim, one of its phases and a delay in it, in seconds."""
    victim = draw.choice(list(victims))
    phase = draw.choice(victims[victim])
    return victim, phase, round(draw.uniform(0.0, LONGEST_S[phase]), 3)


def _signal(draw: random.Random, shape: Shape) -> Draw:
    """One signal, most often SIGKILL; a stopped process goes on after at most 1.5 s."""
    victim, phase, delay = _place(draw, shape.victims)
    if victim == "engine":
        return victim, phase, (Blow("KILL", delay),)
    (act,) = draw.choices(SIGNALS[:5], (60, 12, 10, 6, 12))
    first = Blow(act, delay)
    if act != "STOP":
        return victim, phase, (first,)
    return victim, phase, (first, Blow("CONT", round(draw.uniform(0.2, 1.5), 3)))


def _storm(draw: random.Random, shape: Shape) -> Draw:
    """Three to five signals in any order; the process is never left stopped."""
    victims = {name: phases for name, phases in shape.victims.items() if name != "engine"}
    victim, phase, delay = _place(draw, victims)
    acts = [draw.choice(SIGNALS) for _ in range(draw.randint(3, 5))]
    if "STOP" in acts:
        acts.append("CONT")
    gaps = [delay, *(round(draw.uniform(0.0, 0.3), 3) for _ in acts[1:])]
    return victim, phase, tuple(Blow(act, gap) for act, gap in zip(acts, gaps, strict=True))


def _limit(draw: random.Random, shape: Shape) -> Draw:
    """From now on a process cannot make its files longer, or cannot open one."""
    victims = {name: phases for name, phases in shape.victims.items() if name in ("driver", "wrapper")}
    victim, phase, delay = _place(draw, victims)
    acts: tuple[Act, ...] = ("no-growth", "no-files")
    # A Python that starts without descriptors cannot load itself: nothing of profrun runs yet.
    return victim, phase, (Blow(acts[0] if phase == "starting" else draw.choice(acts), delay),)


def _disk(draw: random.Random, shape: Shape) -> Draw:
    """The disk with the runs is full from now on."""
    _, phase, delay = _place(draw, {"folder": PHASES})
    return "folder", phase, (Blow("disk-full", delay),)


def _write(draw: random.Random, shape: Shape) -> Draw:
    """A few writes under the run's folder fail, by driver, wrapper or program."""
    victim = draw.choice(("driver", "wrapper", "program"))
    return victim, "planned", (Blow(draw.choice(("EIO", "ENOSPC")), 0.0),)


def _clock(draw: random.Random, shape: Shape) -> Draw:
    """The clock jumps by an hour."""
    _, phase, delay = _place(draw, {"clock": PHASES})
    return "clock", phase, (Blow(draw.choice(("clock-forward", "clock-back")), delay),)


def _second(draw: random.Random, shape: Shape) -> Draw:
    """One or two other commands on the same run, for half of the seeds after its driver is gone."""
    _, phase, delay = _place(draw, {"folder": _LATER})
    blows = [Blow("KILL", delay)] if draw.random() < 0.5 else []
    for number in range(draw.randint(1, 2)):
        first = not blows and not number
        blows.append(Blow(draw.choice(SECOND), delay if first else round(draw.uniform(0.0, 0.3), 3)))
    return "driver", phase, tuple(blows)


def _version(draw: random.Random, shape: Shape) -> Draw:
    """profrun 0.1 on a folder of this one, or the other way round."""
    act: Act = draw.choice(OLD)
    _, phase, delay = _place(draw, {"folder": _LATER})
    blows = (Blow("KILL", delay),) if act != "old-status" else ()
    if act == "old-submit":  # it is the older one that is killed; this one resumes
        return "driver", phase, (Blow(act, 0.0), *blows)
    return "driver", phase, (*blows, Blow(act, 0.1 if blows else delay))


_KIND = {
    "signal": _signal,
    "storm": _storm,
    "limit": _limit,
    "disk": _disk,
    "write": _write,
    "clock": _clock,
    "second": _second,
    "version": _version,
}
