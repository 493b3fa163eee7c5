"""Checks of a whole job: placeholders without a value, names that nothing defines, options that exclude each
other."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping

from profrun.contract.codec import given_json
from profrun.contract.launch_blocking import BLOCKING_VARIABLES
from profrun.contract.profilers import NEUTRAL, TIMELINE, all_names, all_serial, candidates, profiler
from profrun.contract.schedule import LIMITS
from profrun.jobs.change_checks import check_changes, check_sequential
from profrun.jobs.command import CommandError, fill, fill_command, pieces, split
from profrun.jobs.expectation import CHECKS, Bounded, Expectation
from profrun.jobs.model import Job
from profrun.jobs.nodes import Node, find
from profrun.jobs.problems import Problems, Where, nearest, suggest
from profrun.jobs.profilers import options_of

MAX_TRIALS = 10_000


def check(job: Job, root: Node, problems: Problems) -> None:
    """Note everything that is wrong with, or odd about, a job whose single values are right.

    Args:
        root: the spec that the job was read from, for the places of problems.
    """
    used = _placeholders(job, root, problems)
    if not problems.found:
        _undefined(used, job, root, problems)
    if not problems.found:
        _unused(used, job, root, problems)
        _commands(job, root, problems)
    _environment(job, root, problems)
    _collectors(job, root, problems)
    _options(job, root, problems)
    _expectations(job, root, problems)
    _mounts(job, root, problems)
    _amount(job, root, problems)
    _ranks(job, root, problems)
    check_changes(job, root, problems)
    check_sequential(job, root, problems)


def _templates(job: Job) -> dict[tuple[str, ...], str]:
    """Path -> text of everything that may hold placeholders."""
    return {("command",): job.command, **{("env", name): text for name, text in job.env.items()}}


def _node(root: Node, path: tuple[str, ...]) -> Node:
    node = root
    for part in path:
        node = node.get(part) or node
    return node


def _placeholders(job: Job, root: Node, problems: Problems) -> dict[str, tuple[str, Where]]:
    """Name -> (what uses it, where it is used first)."""
    used: dict[str, tuple[str, Where]] = {}
    for path, text in _templates(job).items():
        node, at = _node(root, path), ".".join(path)
        try:
            for piece in pieces(text):
                if piece.name:
                    used.setdefault(piece.text, (at, node.at(piece.offset)))
        except CommandError as error:
            problems.bad(node.at(error.mistake.offset), f"{at}: {error.mistake.what}", error.mistake.fix)
    return used


def _undefined(used: Mapping[str, tuple[str, Where]], job: Job, root: Node, problems: Problems) -> None:
    for name, (at, where) in used.items():
        lacking = [variant for variant, values in job.variants.items() if name not in values]
        if len(lacking) == len(job.variants):
            known = {key for values in job.variants.values() for key in values}
            fix = (
                suggest(name, sorted(known), "values are")
                if known
                else f"add variants: {{default: {{{name}: ...}}}}"
            )
            problems.bad(where, f"{at}: no variant has a value for {{{name}}}", fix)
        elif lacking:
            place = find(root, "variants", lacking[0]) if root.get("variants") else find(root, "matrix")
            close = nearest(name, sorted(job.variants[lacking[0]]))
            problems.bad(
                place,
                f"variants.{lacking[0]}: no value for {{{name}}} of the {at}",
                f"did you mean '{close}'?" if close else f"add '{name}: ...'",
            )


def _unused(used: Mapping[str, tuple[str, Where]], job: Job, root: Node, problems: Problems) -> None:
    seen: set[str] = set()
    for variant, values in job.variants.items():
        for name in values:
            if name not in used and name not in seen:
                seen.add(name)
                block = root.get("variants")
                point = block.get(variant) if block else root.get("matrix")
                key = point.key(name) if point else None
                problems.warn(
                    key.where if key else find(root, "matrix"),
                    f"nothing uses '{name}'",
                    f"put {{{name}}} into the command, or delete it",
                )


def _commands(job: Job, root: Node, problems: Problems) -> None:
    """Every point's command must split; a fault of the template itself is reported once, at its place."""
    node = _node(root, ("command",))
    neutral = _neutral(job.command)
    try:
        split(neutral)
    except CommandError as error:
        where = node.at(error.mistake.offset) if len(neutral) == len(job.command) else node.where
        problems.bad(where, f"command: {error.mistake.what}", error.mistake.fix)
        return
    for variant, point in job.variants.items():
        try:
            split(fill_command(job.command, point))
        except CommandError as error:
            where = find(root, "variants", variant) if root.get("variants") else find(root, "matrix")
            problems.bad(
                where, f"variants.{variant}: in the filled command {error.mistake.what}", error.mistake.fix
            )
        for name, text in job.env.items():
            if "\0" in fill(text, point):
                problems.bad(find(root, "env", name), f"env.{name}: holds a NUL character", "leave it out")


def _neutral(template: str) -> str:
    """The template with harmless text for placeholders, as long as they are, so that offsets stay true."""
    return "".join("x" * (len(piece.text) + 2) if piece.name else piece.text for piece in pieces(template))


def _environment(job: Job, root: Node, problems: Problems) -> None:
    for name in job.env:
        if name in BLOCKING_VARIABLES:
            problems.bad(
                find(root, "env", name),
                f"env: {name} belongs to launch_blocking",
                "use 'launch_blocking: on' or 'both'",
            )
        elif name.startswith("PROFRUN_"):
            problems.bad(find(root, "env", name), f"env: {name} belongs to profrun", "use another name")
    for i, name in enumerate(job.secrets):
        where = find(root, "secrets", i)
        if name in job.env:
            problems.bad(where, f"secrets: '{name}' is in env too", "keep it in one of them")
        elif name in BLOCKING_VARIABLES or name.startswith("PROFRUN_"):
            problems.bad(where, f"secrets: '{name}' cannot be taken from the caller", "leave it out")


def _collectors(job: Job, root: Node, problems: Problems) -> None:
    _named_twice(job, root, problems)
    _repeats(job, root, problems)
    serial = [name for name in job.collectors if all_serial(options_of(job, name))]
    if job.launch_blocking == "both" and serial:
        problems.warn(
            find(root, "launch_blocking"),
            f"trials of {' and '.join(serial)} get no blocking twin",
            "they run one kernel at a time anyway",
        )
    _unused_schedule(job, root, problems)


def _unused_schedule(job: Job, root: Node, problems: Problems) -> None:
    """Warn of keys that count steps where the run is recorded as a whole."""
    schedule = root.get("schedule")
    if schedule is None or not job.ranges.whole:
        return
    unused = [key for key, _ in schedule.pairs if key.text not in LIMITS]
    if unused:
        problems.warn(
            unused[0].where,
            f"schedule: {', '.join(key.text for key in unused)}: not used, because ranges.steps is off",
            f"only {' and '.join(LIMITS)} limit a run that is recorded as a whole",
        )


def _options(job: Job, root: Node, problems: Problems) -> None:
    """Refuse options that exclude each other."""
    for path, options in _blocks(job):
        for first, second in profiler(path[-1]).alternatives:
            if getattr(options, first) is not None and getattr(options, second) is not None:
                problems.bad(
                    find(root, *path, second),
                    f"{'.'.join(path)}: both '{first}' and '{second}' are given",
                    "keep one of them",
                )


def _blocks(job: Job) -> Iterator[tuple[tuple[str, ...], object]]:
    """(path in the spec, options) of every block of a profiler's options."""
    for name, options in job.options.items():
        yield (name,), options
    for neutral, blocks in job.overlays.items():
        for name, options in blocks.items():
            yield (neutral, name), options


def _named_twice(job: Job, root: Node, problems: Problems) -> None:
    """Refuse a profiler that is collected under its own name and under a vendor-neutral one."""
    collectors = job.collectors
    for neutral in NEUTRAL:
        if neutral not in collectors:
            continue
        twice = next((found for found in candidates(neutral) if found.name in collectors), None)
        if twice is not None:
            vendor = (twice.timeline_on if neutral == TIMELINE else twice.counters_on)[0].upper()
            problems.bad(
                find(root, "collectors", collectors.index(neutral)),
                f"collectors: '{neutral}' is '{twice.name}' on {vendor}",
                f"keep '{neutral}' or '{twice.name}'",
            )


def _repeats(job: Job, root: Node, problems: Problems) -> None:
    """Refuse an unknown collector; one that this job does not have is a warning: `-c` may choose it."""
    # all_names looks for the profilers of other packages, which takes longer than reading a spec
    for name in () if isinstance(job.repeats, int) else sorted(job.repeats.keys() - set(job.collectors)):
        if name in all_names():
            problems.warn(
                find(root, "repeats", name),
                f"repeats: '{name}' is not collected, so that its number is not used",
                f"collectors here: {', '.join(job.collectors)}",
            )
        else:
            problems.bad(
                find(root, "repeats", name),
                f"repeats: '{name}' is no collector",
                suggest(name, all_names(), "collectors"),
            )


def _expectations(job: Job, root: Node, problems: Problems) -> None:
    for i, item in enumerate(job.expect):
        _selected(i, item, job, root, problems)
        if not item.checks:
            problems.bad(
                find(root, "expect", i),
                f"expect[{i}]: nothing is expected",
                f"add one of {', '.join(CHECKS)}",
            )
        for one, other in (("present", "absent"), ("finds", "finds_not")):
            both = sorted(set(getattr(item, one) or ()) & set(getattr(item, other) or ()))
            if both:
                problems.bad(
                    find(root, "expect", i, other),
                    f"expect[{i}]: '{both[0]}' is in both {one} and {other}",
                    "keep one of them",
                )
        for key, given in (("ratio", item.ratio), ("bytes", item.bytes)):
            if given is not None:
                _limits(given, item.others.get(key), ("expect", i, key), root, problems)
        if item.achieved is not None and not given_json(item.achieved):
            problems.bad(
                find(root, "expect", i, "achieved"),
                f"expect[{i}].achieved: there is no limit",
                "add one like memory: [0.7, 1]",
            )


def _selected(i: int, item: Expectation, job: Job, root: Node, problems: Problems) -> None:
    """Every variant that an expectation names must be of the job; another collector is not checked."""
    unknown = [("variant", glob) for glob in item.variant or () if not fnmatch.filter(job.variants, glob)]
    unknown += [(key, name) for key, name in item.others.items() if name not in job.variants]
    for key, name in unknown:
        problems.bad(
            find(root, "expect", i, key),
            f"expect[{i}].{key}: there is no variant '{name}'",
            suggest(name, job.variants, "variants"),
        )
    if item.collector is not None and item.collector not in job.collectors:
        problems.warn(
            find(root, "expect", i, "collector"),
            f"expect[{i}].collector: '{item.collector}' is not collected, so that this claim is not checked",
            suggest(item.collector, job.collectors, "collectors here"),
        )


def _limits(
    given: Bounded, other: str | None, path: tuple[str | int, ...], root: Node, problems: Problems
) -> None:
    """One limit, or one at each end; with another variant they are ratios, not sizes."""
    at = "expect[{}].{}".format(*path[1:])
    low, high = given.limits
    if (low is None and high is None) or (given.between and (given.below or given.above)):
        fix = "add one of between, below, above" if low is None and high is None else "keep 'between' alone"
        what = "there is no limit" if low is None and high is None else "the limits are given twice"
        problems.bad(find(root, *path), f"{at}: {what}", fix)
    elif low is not None and high is not None and low > high:
        problems.bad(find(root, *path), f"{at}: nothing is above {low:g} and below {high:g}", "swap them")
    elif other is not None and max(low or 0, high or 0) >= 1 << 20:
        problems.bad(
            find(root, *path),
            f"{at}: the limits are of a ratio to '{other}', and not sizes",
            "write a number such as 0.5, or leave out 'to'",
        )


def _mounts(job: Job, root: Node, problems: Problems) -> None:
    targets: set[str] = set()
    for i, mount in enumerate(job.mounts):
        target = mount.split(":")[1].rstrip("/") or "/"
        if target in targets:
            problems.bad(find(root, "mounts", i), f"mounts: '{target}' is mounted twice", "use two targets")
        targets.add(target)


def _amount(job: Job, root: Node, problems: Problems) -> None:
    doubled = 2 if job.launch_blocking == "both" else 1
    count = len(job.variants) * sum(map(job.repeats_of, job.collectors)) * doubled
    if count > MAX_TRIALS:
        problems.bad(
            find(root, "repeats"),
            f"this makes {count} trials",
            f"keep to {MAX_TRIALS}: fewer points or repeats",
        )


def _ranks(job: Job, root: Node, problems: Problems) -> None:
    """Refuse a rank that no trial has. Where there is one in all, the command may be a launcher of more."""
    count = job.resources.nodes * job.resources.ranks_per_node
    for i, rank in enumerate(job.ranks or ()):
        if rank >= count > 1:
            problems.bad(
                find(root, "ranks", i),
                f"ranks: there is no rank {rank}: a trial has {count}",
                f"name ranks from 0 to {count - 1}",
            )
