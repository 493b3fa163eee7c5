"""The long form: ``python -m tests.real.faults --seed 1 --count 1000`` disturbs a thousand runs and counts.

Exit code 0: every fault that was injected was survived. 1: a promise was broken; the folders of those runs
are kept, and ``--only SEED`` repeats one. 2: too many faults missed their moments.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast, get_args

from tests.real.faults.inject import lacks
from tests.real.faults.plan import PHASES, SHAPES, Backend, Fault, plan
from tests.real.faults.scenario import Result, carry_out
from tests.real.faults.workshop import workshop

LANDED_SHARE = 0.9
"""At least this share of the faults must land: the rest came after their run was over."""


def main(argv: Sequence[str]) -> int:
    """Carry out what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed [1]")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds [1000]")
    parser.add_argument("--only", type=int, nargs="*", help="these seeds alone")
    parser.add_argument("--jobs", type=int, default=6, help="runs at the same time [6]")
    parser.add_argument("--backends", default="local", help="local,docker,slurm [local]")
    parser.add_argument("--folder", type=Path, help="where the runs go [a new folder in $TMPDIR]")
    options = parser.parse_args(argv)
    backends = tuple(options.backends.split(","))
    if not set(backends) <= set(get_args(Backend)):
        parser.error(f"backends are {', '.join(get_args(Backend))}")
    seeds = options.only or range(options.seed, options.seed + options.count)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="profrun-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    results = []
    with workshop(folder, cast(Sequence[Backend], backends)) as (tools, engines):
        faults = [plan(seed, backends) for seed in seeds]
        missing = Counter(lack for fault in faults if (lack := lacks(fault, tools)))
        able = [fault for fault in faults if lacks(fault, tools) is None]
        for result in in_forks(able, options.jobs, lambda one: carry_out(one, folder, tools, engines)):
            results.append(result)
            _tell(result)
    print(table(results))
    for what, number in missing.items():
        print(f"not injected, because {what} is not there: {number}")
    landed = sum(result.landed for result in results)
    bad = sorted(result.fault.seed for result in results if result.broken)
    print(f"{time.monotonic() - began:.0f} s; seeds with a broken promise: {bad or 'none'}")
    if bad:
        return 1
    return 0 if landed >= LANDED_SHARE * len(faults) else 2


def in_forks(faults: Sequence[Fault], jobs: int, work: Callable[[Fault], Result]) -> Iterator[Result]:
    """Results as they come, of one process for each fault, ``jobs`` at a time."""
    waiting = list(reversed(faults))
    running: dict[int, tuple[Fault, int]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            fault = waiting.pop()
            reader, writer = os.pipe()
            pid = os.fork()
            if not pid:
                os.close(reader)
                _answer(writer, lambda fault=fault: work(fault))  # type: ignore[misc]
            os.close(writer)
            running[pid] = (fault, reader)
        pid, status = os.wait()
        if pid not in running:
            continue
        fault, reader = running.pop(pid)
        with os.fdopen(reader, "rb") as pipe:
            content = pipe.read()
        if content:
            yield cast(Result, pickle.loads(content))
        else:
            why = f"the suite itself failed ({status}); see its traceback above"
            yield Result(fault, False, (why,), 0, 0.0, Path())


def _answer(writer: int, work: Callable[[], Result]) -> None:
    """In the fork: do the work, hand the result over, and end."""
    code = 1
    try:
        os.setsid()
        content = pickle.dumps(work())
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(content)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tell(result: Result) -> None:
    """One line about a fault, and one for each broken promise."""
    fault = result.fault
    acts = " ".join(blow.act for blow in fault.blows)
    how = "BROKEN" if result.broken else "survived" if result.landed else "missed"
    line = f"{fault.seed}: {how}: {fault.shape}, {fault.victim} {fault.phase} {fault.trial}: {acts}"
    print(f"{line} ({result.seconds} s, {result.tries})", flush=True)
    for sentence in (*result.broken, *result.notes):
        print(f"    {sentence}", flush=True)
    if result.broken:
        print(f"    {result.folder}", flush=True)


def table(results: Sequence[Result]) -> str:
    """How many faults hit which part in which phase, and what became of them."""
    hits = Counter((result.fault.victim, result.fault.phase) for result in results if result.landed)
    victims = sorted({victim for victim, _ in hits})
    lines = [f"{'victim':12}" + "".join(f"{phase:>13}" for phase in PHASES) + f"{'all':>8}"]
    for victim in victims:
        numbers = [hits[victim, phase] for phase in PHASES]
        lines.append(f"{victim:12}" + "".join(f"{n or '':>13}" for n in numbers) + f"{sum(numbers):8}")
    numbers = [sum(hits[victim, phase] for victim in victims) for phase in PHASES]
    lines.append(f"{'all':12}" + "".join(f"{n or '':>13}" for n in numbers) + f"{sum(numbers):8}")
    shapes = Counter(result.fault.shape for result in results if result.landed)
    acts = Counter(blow.act for result in results if result.landed for blow in result.fault.blows)
    lines += ["", "jobs: " + ", ".join(f"{name} {shapes[name]}" for name in SHAPES if shapes[name])]
    lines.append("acts: " + ", ".join(f"{act} {number}" for act, number in acts.most_common()))
    counts = {
        "injected": sum(result.landed for result in results),
        "survived": sum(result.landed and not result.broken for result in results),
        "lost": _with(results, "lost:"),
        "left running or lying": _with(results, "left:"),
        "overlaps": _with(results, "overlap:"),
        "hung": _with(results, "hung:"),
        "tracebacks and bugs": _with(results, "traceback:", "bug:"),
        "missed": sum(not result.landed for result in results),
    }
    lines.append("\n" + ", ".join(f"{name} {number}" for name, number in counts.items()))
    return "\n".join(lines)


def _with(results: Sequence[Result], *words: str) -> int:
    return sum(any(sentence.startswith(words) for sentence in result.broken) for result in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
