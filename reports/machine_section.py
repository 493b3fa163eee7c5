"""The sections on where a run ran: machines, GPUs with their clocks before and after, and container images.

Trials on the same machine are shown together. The environment of the job is left out on purpose, because a
report is made to be handed on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from profrun.analysis.trace.used_gpus import UsedGpus
from profrun.contract.provenance import Provenance
from profrun.contract.units import bytes_text
from profrun.reports.html import Child, Html, el
from profrun.reports.html_table import Column, table

Facts = tuple[tuple[str, str], ...]
GpuRow = Mapping[str, object]
"""The state of one GPU in the words of the vendor's tool, with ``trial``, ``when`` and ``used``."""


def machines_html(machines: Mapping[str, Provenance], used: Mapping[str, UsedGpus]) -> Html | None:
    """Facts of each machine, then the state of each GPU around each trial; None without any machine.

    Args:
        machines: trial -> its provenance.
        used: trial -> the GPUs that it used, where that can be asked.
    """
    if not machines:
        return None
    groups: dict[tuple[Facts, tuple[str, ...]], list[str]] = {}
    for trial, found in machines.items():
        groups.setdefault((_facts(found), found.packages), []).append(trial)
    return el(
        "div",
        (_machine(facts, packages, trials) for (facts, packages), trials in groups.items()),
        _gpus(machines, used),
    )


def _facts(found: Provenance) -> Facts:
    """(name, value) of what is known."""
    cpu = " x ".join(str(part) for part in (found.cpus, found.cpu) if part)
    rows = [
        ("host", found.host),
        ("system", " ".join(part for part in (found.os, found.kernel, found.machine) if part)),
        ("CPU", f"{cpu}, {bytes_text(found.memory_bytes)} of memory" if cpu else None),
        ("vendor", f"{found.vendor} ({found.vendor_by})" if found.vendor_by else found.vendor),
        ("CUDA / ROCm", found.cuda or found.rocm),
        ("Python", found.python),
        ("torch", found.torch.version if found.torch else None),
        ("git", found.git.text),
    ]
    return tuple((name, value) for name, value in rows if value)


def _machine(facts: Facts, packages: Sequence[str], trials: Sequence[str]) -> Html:
    listed = None
    if packages:
        listed = el("details", el("summary", f"{len(packages)} packages"), el("pre", "\n".join(packages)))
    return el(
        "div",
        el("p", f"{trials[0]} and {len(trials) - 1} more trials" if trials[1:] else trials[0], class_="note"),
        el("dl", ((el("dt", name), el("dd", value)) for name, value in facts), class_="facts"),
        listed,
    )


def _gpus(machines: Mapping[str, Provenance], used: Mapping[str, UsedGpus]) -> Html | None:
    rows: list[GpuRow] = []
    for trial, found in machines.items():
        mine = used.get(trial, UsedGpus())
        for when, gpus, ours in (
            ("before", found.gpus.before, mine.states.before),
            ("after", found.gpus.after, mine.states.after),
        ):
            for gpu in gpus:
                told = ("yes" if gpu in ours else "no") if mine.told else None
                rows.append({"trial": trial, "when": when, "used": told, **gpu})
    if not rows:
        return None
    reasons = "NVML's clocks-event reasons; gpu_idle means that there is none"
    whose = "whether the trial used this GPU, by its trace; - where nothing tells which GPUs it used"
    columns: list[Column[GpuRow]] = [
        Column("trial", lambda row: _text(row.get("trial"))),
        Column("when", lambda row: _text(row.get("when"))),
        Column("GPU", lambda row: _text(row.get("name") or row.get("card"))),
        Column("used", lambda row: _text(row.get("used")), note=whose),
        Column("driver", lambda row: _text(row.get("driver_version"))),
        _number("clocks_sm", "SM clock", "MHz"),
        _number("clocks_mem", "memory clock", "MHz"),
        _number("temperature_gpu", "temperature", "C"),
        _number("power_draw", "power", "W"),
        _number("power_limit", "limit", "W"),
        Column("throttled by", lambda row: _text(row.get("throttled_by")), note=reasons),
    ]
    return table("gpus", columns, rows, caption="GPUs before and after each trial", limit=80)


def _number(key: str, title: str, unit: str) -> Column[GpuRow]:
    def value(row: GpuRow) -> Child:
        found = row.get(key)
        return found if isinstance(found, (int, float)) else None

    return Column(title, value, "number", unit=unit)


def _text(value: object) -> str | None:
    """A value as text, lists with commas; None where there is nothing."""
    found = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return str(found) if found else None


def images_html(machines: Mapping[str, Provenance]) -> Html | None:
    """The container images of the trials; None where all ran outside of one.

    Args:
        machines: trial -> its provenance.
    """
    images = [found.image for found in machines.values()]
    counts = Counter((image.reference, image.digest or "not known") for image in images if image.reference)
    if not counts:
        return None
    columns: list[Column[tuple[tuple[str | None, str], int]]] = [
        Column("image", lambda row: row[0][0]),
        Column("digest", lambda row: row[0][1]),
        Column("trials", lambda row: row[1], "count"),
    ]
    return table("images", columns, list(counts.items()), caption="images that trials ran in")
