"""How often 95 % intervals of shares of the variance hold the true share, in simulations.

    python bench/variance_shares.py [--runs 500] [--write docs/why-times-vary.md]

Every world has two causes, an SM clock and other work on the host, with a known effect on the times of
steps; what is left is noise. The true share is that of the steps that were made: it is computed from the
causes as they were drawn, their known effects, and the known variance of the noise.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profrun.analysis.step_time import Floats
from profrun.analysis.variance_shares import Factor, VarianceShares, variance_shares

SCATTER = 0.03
"""Standard deviation of the logarithm of step times in every world."""


@dataclass(frozen=True)
class World:
    """What is true in a simulation.

    Attributes:
        name: in words.
        steps: of a run.
        clock, host: variance that each alone brings, as a part of it all; the noise has the rest.
        together: correlation of the two causes.
        memory: autocorrelation of each cause from step to step.
        noise: autocorrelation of the noise.
        jump: the clock has two values only, the second from this part of the steps on; 0 for none.
        spikes: part of the steps that take five times as long, for no reason.
        ordered: steps of a run; else independent trials.
    """

    name: str
    steps: int = 600
    clock: float = 0.0
    host: float = 0.0
    together: float = 0.0
    memory: float = 0.95
    noise: float = 0.0
    jump: float = 0.0
    spikes: float = 0.0
    ordered: bool = True


WORLDS = (
    World("no cause"),
    World("no cause, 60 steps", steps=60),
    World("no cause, slow noise", noise=0.95),
    World("no cause, the clock jumps", jump=0.1),
    World("no cause, the clock jumps, slow noise", jump=0.1, noise=0.95),
    World("no cause, 1 % spikes", spikes=0.01),
    World("clock 70 %", clock=0.7),
    World("clock 70 %, 60 steps", clock=0.7, steps=60),
    World("clock 70 %, slow noise", clock=0.7, noise=0.95),
    World("clock 70 %, it jumps", clock=0.7, jump=0.1),
    World("clock 70 %, 0.5 % spikes", clock=0.7, spikes=0.005),
    World("clock 30 %", clock=0.3),
    World("clock 50 %, host 20 %", clock=0.5, host=0.2),
    World("clock 70 %, the host goes with it", clock=0.7, together=0.7),
    World("clock 30 %, host 20 %, they go together", clock=0.3, host=0.2, together=0.7),
    World("6 trials, no cause", steps=6, memory=0, ordered=False),
    World("12 trials, clock 70 %", steps=12, clock=0.7, memory=0, ordered=False),
)


def series(count: int, memory: float, rng: np.random.Generator) -> Floats:
    """A first-order autoregression of variance 1, float64, shape (count,)."""
    shocks = rng.normal(size=count) * math.sqrt(1 - memory**2)
    found = np.empty(count)
    found[0] = rng.normal()
    for place in range(1, count):
        found[place] = memory * found[place - 1] + shocks[place]
    return found


def simulated(world: World, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, tuple[float, float]]:
    """Times, clock and other work of one run, and the true shares of the two."""
    clock, other = series(world.steps, world.memory, rng), series(world.steps, world.memory, rng)
    if world.jump:
        clock = (np.arange(world.steps) > world.jump * world.steps).astype(np.float64)
        clock = (clock - clock.mean()) / clock.std()
    host = world.together * clock + math.sqrt(1 - world.together**2) * other
    effects = np.stack([math.sqrt(world.clock) * clock, math.sqrt(world.host) * host])
    cross = 2 * world.together * math.sqrt(world.clock * world.host)
    left = 1 - world.clock - world.host - cross
    noise = series(world.steps, world.noise, rng)
    logs = SCATTER * (effects.sum(axis=0) + math.sqrt(left) * noise)
    spikes = rng.random(world.steps) < world.spikes
    times = 1e7 * np.exp(logs) * np.where(spikes, 5, 1)
    return times, clock, host, _truth(effects, clock, host, left * noise.var() if world.noise else left)


def _truth(effects: Floats, clock: Floats, host: Floats, left: float) -> tuple[float, float]:
    """The mean over both orders of what each cause adds to the explained variance.

    A cause that goes the wrong way by chance explains nothing alone: it can only make steps longer.
    """
    explained = effects.sum(axis=0)
    total = explained.var() + left
    alone = [max(0.0, np.cov(explained, one, bias=True)[0, 1]) ** 2 / one.var() for one in (clock, host)]
    both = explained.var()
    return (alone[0] + both - alone[1]) / 2 / total, (alone[1] + both - alone[0]) / 2 / total


def shares(world: World, times: Floats, clock: Floats, host: Floats, seed: int) -> VarianceShares | None:
    """The answer of profrun for one run."""
    factors = [Factor("SM clock", "clock", clock), Factor("other work", "host", host)]
    if world.ordered:
        number = np.arange(len(times), dtype=np.float64)
        factors.append(Factor("drift", "position", number, longer=False, last=True))
    return variance_shares(times, factors, ordered=world.ordered, seed=seed)


def row(world: World, runs: int) -> str:
    """One line of the table."""
    found = []
    for seed in range(runs):
        times, clock, host, truth = simulated(world, np.random.default_rng(seed))
        told = shares(world, times, clock, host, seed)
        if told is None:
            continue
        for name, true in zip(("clock", "host"), truth, strict=True):
            one = told.of(name)
            assert one is not None
            found.append((true, one.share, one.low, one.high))
    if not found:
        return f"| {world.name} | {world.steps} | refused" + " | - " * 6 + "|"
    table = np.array(found).reshape(-1, 2, 4)
    cells = [world.name, str(world.steps), f"{len(table) / runs * 100:.0f} %"]
    for place in range(2):
        true, share, low, high = table[:, place].T
        held = np.mean((low <= true + 1e-9) & (true <= high + 1e-9))
        cells += [
            f"{true.mean() * 100:.0f} %", f"{share.mean() * 100:.1f} %",
            f"{held * 100:.1f} %", f"{np.mean(low > 0) * 100:.1f} %",
        ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| world | values | answered "
    + "".join(
        f"| {name}: true | told | interval holds it | interval is above 0 " for name in ("clock", "host")
    )
    + "|",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)
MARK = "<!-- shares -->\n"


def lines(worlds: Sequence[World], runs: int) -> Iterator[str]:
    """The table, line by line."""
    yield from HEAD
    for world in worlds:
        yield row(world, runs)


def main() -> None:
    """Print the table, and write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    made = []
    for line in lines(WORLDS, given.runs):
        print(line, flush=True)
        made.append(line)
    if given.write:
        before, _, after = given.write.read_text(encoding="utf-8").split(MARK)
        given.write.write_text(f"{before}{MARK}{chr(10).join(made)}\n{MARK}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
