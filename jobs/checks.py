"""What no single value shows: placeholders without a value, names of nothing, impossible combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from profrun.contract.launch_blocking import BLOCKING_VARIABLES
from profrun.contract.profilers import NEUTRAL, TIMELINE, all_serial, candidates
from profrun.jobs.command import CommandError, fill, fill_command, pieces, split
from profrun.jobs.nodes import Node
from profrun.jobs.problems import Problems, Where, suggest
from profrun.jobs.profilers import options_of
from profrun.jobs.schema import CHECKS

MAX_TRIALS = 10_000

Values = Mapping[str, Any]


def check(values: Values, variants: Mapping[str, Any], root: Node, problems: Problems) -> None:
    """Note everything that is wrong with, or odd about, a spec whose single values are right."""
    used = _placeholders(values, root, problems)
    if not problems.found:
        _undefined(used, variants, root, problems)
    if not problems.found:
        _unused(used, variants, root, problems)
        _commands(values, variants, root, problems)
    _environment(values, root, problems)
    _collectors(values, root, problems)
    _expectations(values, variants, root, problems)
    _mounts(values, root, problems)
    _amount(values, variants, root, problems)


def find(root: Node, *path: str | int) -> Where:
    """Where the value at this path stands, or the last part of the path that is there."""
    node, where = root, root.where
    for part in path:
        if isinstance(part, int):
            below = node.items[part] if part < len(node.items) else None
        else:
            below = node.get(part)
        if below is None:
            break
        node = below
        where = node.where
    return where


def _templates(values: Values) -> dict[tuple[str, ...], str]:
    """Path -> text of everything that may hold placeholders."""
    found: dict[tuple[str, ...], str] = {("command",): values["command"]}
    found.update({("env", name): text for name, text in values["env"].items()})
    return found


def _node(root: Node, path: tuple[str, ...]) -> Node:
    node = root
    for part in path:
        node = node.get(part) or node
    return node


def _placeholders(values: Values, root: Node, problems: Problems) -> dict[str, tuple[str, Where]]:
    """Name -> (what uses it, where it is used first)."""
    used: dict[str, tuple[str, Where]] = {}
    for path, text in _templates(values).items():
        node, at = _node(root, path), ".".join(path)
        try:
            for piece in pieces(text):
                if piece.name:
                    used.setdefault(piece.text, (at, node.at(piece.offset)))
        except CommandError as error:
            problems.bad(node.at(error.finding.offset), f"{at}: {error.finding.what}", error.finding.fix)
    return used


def _undefined(
    used: Mapping[str, tuple[str, Where]], variants: Values, root: Node, problems: Problems
) -> None:
    for name, (at, where) in used.items():
        lacking = [variant for variant, values in variants.items() if name not in values]
        if len(lacking) == len(variants):
            known = {key for values in variants.values() for key in values}
            fix = (
                suggest(name, sorted(known), "values are")
                if known
                else f"add variants: {{default: {{{name}: ...}}}}"
            )
            problems.bad(where, f"{at}: no variant has a value for {{{name}}}", fix)
        elif lacking:
            place = find(root, "variants", lacking[0]) if root.get("variants") else find(root, "matrix")
            known = set(variants[lacking[0]])
            problems.bad(
                place,
                f"variants.{lacking[0]}: no value for {{{name}}} of the {at}",
                suggest(name, sorted(known), "").split("?")[0] + "?"
                if _close(name, known)
                else f"add '{name}: ...'",
            )


def _close(name: str, known: set[str]) -> bool:
    return suggest(name, sorted(known), "").startswith("did you mean")


def _unused(used: Mapping[str, Any], variants: Values, root: Node, problems: Problems) -> None:
    seen: set[str] = set()
    for variant, values in variants.items():
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


def _commands(values: Values, variants: Values, root: Node, problems: Problems) -> None:
    """Every point's command must split; a fault of the template itself is reported once, at its place."""
    node = _node(root, ("command",))
    neutral = _neutral(values["command"])
    try:
        split(neutral)
    except CommandError as error:
        where = node.at(error.finding.offset) if len(neutral) == len(values["command"]) else node.where
        problems.bad(where, f"command: {error.finding.what}", error.finding.fix)
        return
    for variant, point in variants.items():
        try:
            split(fill_command(values["command"], point))
        except CommandError as error:
            where = find(root, "variants", variant) if root.get("variants") else find(root, "matrix")
            problems.bad(
                where, f"variants.{variant}: in the filled command {error.finding.what}", error.finding.fix
            )
        for name, text in values["env"].items():
            if "\0" in fill(text, point):
                problems.bad(find(root, "env", name), f"env.{name}: holds a NUL character", "leave it out")


def _neutral(template: str) -> str:
    """The template with harmless text for placeholders, as long as they are, so that offsets stay true."""
    return "".join("x" * (len(piece.text) + 2) if piece.name else piece.text for piece in pieces(template))


def _environment(values: Values, root: Node, problems: Problems) -> None:
    for name in values["env"]:
        if name in BLOCKING_VARIABLES:
            problems.bad(
                find(root, "env", name),
                f"env: {name} belongs to launch_blocking",
                "use 'launch_blocking: on' or 'both'",
            )
        elif name.startswith("PROFRUN_"):
            problems.bad(find(root, "env", name), f"env: {name} belongs to profrun", "use another name")
    for i, name in enumerate(values["secrets"]):
        where = find(root, "secrets", i)
        if name in values["env"]:
            problems.bad(where, f"secrets: '{name}' is in env too", "keep it in one of them")
        elif name in BLOCKING_VARIABLES or name.startswith("PROFRUN_"):
            problems.bad(where, f"secrets: '{name}' cannot be taken from the caller", "leave it out")


def _collectors(values: Values, root: Node, problems: Problems) -> None:
    _named_twice(values["collectors"], root, problems)
    serial = [name for name in values["collectors"] if all_serial(options_of(values, name))]
    if values["launch_blocking"] == "both" and serial:
        problems.warn(
            find(root, "launch_blocking"),
            f"trials of {' and '.join(serial)} get no blocking twin",
            "they run one kernel at a time anyway",
        )
    if values["ranges"].get("steps") == "off" and values["schedule"]:
        problems.bad(
            find(root, "schedule"),
            "schedule: steps are off, so no step can be counted",
            "set ranges.steps to auto, or leave the schedule out",
        )
    for at in ("ncu", "counters.ncu"):
        block: Any = values
        for part in at.split("."):
            block = block.get(part, {})
        if "sections" in block and "set" in block:
            where = find(root, *at.split("."), "sections")
            problems.bad(where, f"{at}: both 'set' and 'sections' are given", "keep one of them")


def _named_twice(collectors: Sequence[str], root: Node, problems: Problems) -> None:
    """Refuse a profiler that is collected under its own name and under a vendor-neutral one."""
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


def _expectations(values: Values, variants: Values, root: Node, problems: Problems) -> None:
    for i, item in enumerate(values["expect"]):
        variant, collector = item.get("variant"), item.get("collector")
        if variant is not None and variant not in variants:
            problems.bad(
                find(root, "expect", i, "variant"),
                f"expect[{i}].variant: there is no variant '{variant}'",
                suggest(variant, variants, "variants"),
            )
        if collector is not None and collector not in values["collectors"]:
            problems.bad(
                find(root, "expect", i, "collector"),
                f"expect[{i}].collector: '{collector}' is not collected",
                suggest(collector, values["collectors"], "collectors here"),
            )
        if not any(name in item for name in CHECKS):
            problems.bad(
                find(root, "expect", i),
                f"expect[{i}]: nothing is expected",
                f"add one of {', '.join(CHECKS)}",
            )
        both = sorted(set(item.get("present", ())) & set(item.get("absent", ())))
        if both:
            problems.bad(
                find(root, "expect", i, "absent"),
                f"expect[{i}]: '{both[0]}' is both present and absent",
                "keep one of them",
            )


def _mounts(values: Values, root: Node, problems: Problems) -> None:
    targets: set[str] = set()
    for i, mount in enumerate(values["mounts"]):
        target = mount.split(":")[1].rstrip("/") or "/"
        if target in targets:
            problems.bad(find(root, "mounts", i), f"mounts: '{target}' is mounted twice", "use two targets")
        targets.add(target)


def _amount(values: Values, variants: Values, root: Node, problems: Problems) -> None:
    doubled = 2 if values["launch_blocking"] == "both" else 1
    count = len(variants) * len(values["collectors"]) * values["repeats"] * doubled
    if count > MAX_TRIALS:
        problems.bad(
            find(root, "repeats"),
            f"this makes {count} trials",
            f"keep to {MAX_TRIALS}: fewer points or repeats",
        )
