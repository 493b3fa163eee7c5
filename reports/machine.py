"""Where a run ran: machines, GPUs with their clocks before and after, and container images.

Trials on the same machine are told once. The environment of the job is left out on purpose: a report is made
to be handed on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from profrun.contract.units import bytes_text
from profrun.reports.html import Html, el
from profrun.reports.html_table import Column, table

Provenance = Mapping[str, Any]


def machines_html(machines: Mapping[str, Provenance]) -> Html | None:
    """Facts of each machine, then each GPU's state around each trial."""
    if not machines:
        return None
    groups: dict[str, tuple[list[tuple[str, str]], list[str], list[str]]] = {}
    for trial, found in machines.items():
        facts = _facts(found)
        packages = [str(package) for package in found.get("packages") or ()]
        groups.setdefault(json.dumps([facts, packages]), (facts, packages, []))[2].append(trial)
    return el(
        "div",
        (_machine(facts, packages, trials) for facts, packages, trials in groups.values()),
        _gpus(machines),
    )


def _facts(found: Provenance) -> list[tuple[str, str]]:
    torch, git = found.get("torch") or {}, found.get("git") or {}
    cpu = " x ".join(str(part) for part in (found.get("cpus"), found.get("cpu")) if part)
    dirty = {True: ", with changes", False: ", clean", None: ""}[git.get("dirty")]
    rows = [
        ("host", found.get("host")),
        ("system", " ".join(str(found[key]) for key in ("os", "kernel", "machine") if found.get(key))),
        ("CPU", f"{cpu}, {bytes_text(found.get('memory_bytes'))} of memory" if cpu else None),
        ("vendor", " ".join(filter(None, [found.get("vendor"), _bracket(found.get("vendor_by"))]))),
        ("CUDA / ROCm", found.get("cuda") or found.get("rocm")),
        ("Python", found.get("python")),
        ("torch", torch.get("version")),
        ("git", f"{git['sha']}{dirty}" if git.get("sha") else git.get("why")),
    ]
    return [(name, str(value)) for name, value in rows if value]


def _bracket(text: object) -> str:
    return f"({text})" if text else ""


def _machine(facts: Sequence[tuple[str, str]], packages: Sequence[str], trials: Sequence[str]) -> Html:
    listed = None
    if packages:
        listed = el("details", el("summary", f"{len(packages)} packages"), el("pre", "\n".join(packages)))
    said = f"{trials[0]} and {len(trials) - 1} more trials" if len(trials) > 1 else trials[0]
    return el(
        "div",
        el("p", said, class_="note"),
        el("dl", ((el("dt", name), el("dd", value)) for name, value in facts), class_="facts"),
        listed,
    )


def _gpus(machines: Mapping[str, Provenance]) -> Html | None:
    rows = []
    for trial, found in machines.items():
        states = found.get("gpus") or {}
        for when in ("before", "after"):
            rows += [{"trial": trial, "when": when, **gpu} for gpu in states.get(when) or ()]
    if not rows:
        return None

    def number(key: str, title: str, unit: str, note: str = "") -> Column:
        return Column(title, lambda row: _number(row.get(key)), "number", note, unit=unit)

    columns = [
        Column("trial", lambda row: row["trial"]),
        Column("when", lambda row: row["when"]),
        Column("GPU", lambda row: row.get("name") or row.get("card")),
        Column("driver", lambda row: row.get("driver_version")),
        number("clocks_sm", "SM clock", "MHz"),
        number("clocks_mem", "memory clock", "MHz"),
        number("temperature_gpu", "temperature", "C"),
        number("power_draw", "power", "W"),
        number("power_limit", "limit", "W"),
        Column("throttled by", lambda row: ", ".join(row.get("throttled_by") or ()) or None,
               note="NVML's clocks-event reasons; gpu_idle is none"),
    ]  # fmt: skip
    return table("gpus", columns, rows, caption="GPUs before and after each trial", limit=80)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def images_html(machines: Mapping[str, Provenance]) -> Html | None:
    """The container image of each trial; None when all ran outside of one."""
    rows: dict[tuple[str, str], int] = {}
    for found in machines.values():
        image = found.get("image") or {}
        if image.get("reference"):
            key = (str(image["reference"]), str(image.get("digest") or "not known"))
            rows[key] = rows.get(key, 0) + 1
    if not rows:
        return None
    columns = [
        Column("image", lambda row: row[0][0]),
        Column("digest", lambda row: row[0][1]),
        Column("trials", lambda row: row[1], "count"),
    ]
    return table("images", columns, list(rows.items()), caption="images that trials ran in")
