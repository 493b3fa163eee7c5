"""The checks: from what was found on a machine to results that say what it means and how to fix it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from profrun.backends.docker.survey import ImageAnswer
from profrun.backends.privileges import HOW_TO_ALLOW, who_needs
from profrun.contract.finding import Finding, Passed, Severity, gravest_first
from profrun.contract.preflight import Preflight, Readiness
from profrun.contract.profilers import Profiler, profiler, tools
from profrun.contract.units import bytes_text
from profrun.doctor.engine_checks import cannot_ask, check_engine
from profrun.doctor.model import HOST, CheckResult, Machine, Verdict

GIB = 1 << 30
SHM_LOW = GIB
DISK_LOW = {"runs": 2 * GIB, "images": 30 * GIB}
"""A vendor's PyTorch image takes 10 to 25 GiB unpacked."""

Result = Passed | Finding


def check_machine(machine: Machine) -> list[CheckResult]:
    """All results, in the order in which a person would look."""
    on_host = [
        *_gpus(machine),
        *_gpu_use(machine),
        *check_engine(machine),
        *_permissions(machine),
        *_room(machine),
    ]
    on_host += [*_host_profilers(machine), *_leftovers(machine)]
    found = [CheckResult(HOST, result) for result in on_host]
    for image in machine.found.images:
        found += [CheckResult(image.reference, result) for result in _image(machine, image)]
    return found


def verdicts(machine: Machine) -> list[Verdict]:
    """For each profiler: does it work here, and in which image."""
    return [_verdict(machine, profiler(name)) for name in tools()]


def _verdict(machine: Machine, one: Profiler) -> Verdict:
    missing = one.requires if one.requires not in machine.packages else None
    reasons = [f"host: no {missing} in the Python that runs profrun"] if missing else []
    reasons += [f"host: {reason}" for reason in _reasons(machine.preflight, one)]
    inside = {}
    for image in machine.found.images:
        why = _reasons_inside(image, one)
        inside[image.reference] = not why
        reasons += [f"{image.reference}: {reason}" for reason in why]
    row = machine.preflight.collectors.get(one.name)
    return Verdict(one.name, row is not None and row.usable and not missing, inside, tuple(reasons))


def _reasons_inside(image: ImageAnswer, one: Profiler) -> list[str]:
    """Why a profiler does not work in an image; empty when it does."""
    if image.preflight is None or image.contents is None:
        return [str(image.problem)]
    found = _reasons(image.preflight, one)
    if one.requires and not image.contents.version_of(one.requires):
        found.append(f"no {one.requires} in this image")
    return found


def obstacles(preflight: Preflight, one: Profiler) -> list[Finding]:
    """Why a profiler is not usable, by the wrapper's preflight; empty where it is usable."""
    row = preflight.collectors.get(one.name, Readiness(False))
    if row.usable:
        return []
    grave = [finding for finding in row.findings if finding.severity == "critical"]
    return grave or [Finding("unusable", "critical", row.reason or "not looked at")]


def _reasons(preflight: Preflight, one: Profiler) -> list[str]:
    found = obstacles(preflight, one)
    return [f"{finding.what} ({finding.why})" if finding.why else finding.what for finding in found]


def _gpus(machine: Machine) -> Iterator[Result]:
    host = machine.host
    if host.vendor == "none":
        tracing = [one for name in tools() if (one := profiler(name)).exclusive]
        cpu = " and ".join(one.name for one in tracing if "none" in one.vendors)
        gpu = " and ".join(one.name for one in tracing if "none" not in one.vendors)
        yield Finding(
            "gpu",
            "warning",
            "no GPU",
            f"{cpu} record the CPU side only; {gpu} have nothing to record",
            "if there is one, install its kernel driver (then /proc/driver/nvidia or /dev/kfd exists)",
        )
        return
    listed = ", ".join(machine.gpu_names) or f"{host.gpus} {host.vendor} GPU{'s' if host.gpus > 1 else ''}"
    driver = ".".join(map(str, host.nvidia_driver or ())) if host.vendor == "nvidia" else ""
    yield Passed("gpu", listed + (f", driver {driver}" if driver else ""))


def _gpu_use(machine: Machine) -> Iterator[Result]:
    """Which GPUs somebody uses: a job that asks for a number does not get these."""
    uses, unknown = machine.gpus.uses, machine.gpus.unknown
    if not uses:
        return
    busy = [use.text() for use in uses if not use.free]
    free = f"{len(uses) - len(busy)} of {len(uses)} GPUs free"
    why = "a job that asks for a number of GPUs gets free ones only, and waits for none"
    if unknown:
        why = "a job that asks for a number of GPUs gets the first ones, in use or not"
        fix = "name GPUs in the job: resources.gpus: [0]"
        yield Finding("gpu-use", "warning", f"which GPUs are in use could not be told: {unknown}", why, fix)
    elif busy:
        fix = "name GPUs in the job (resources.gpus: [0]) to share them all the same"
        yield Finding("gpu-use", "warning", f"{free}; in use: {', '.join(busy)}", why, fix)
    else:
        yield Passed("gpu-use", free)


def _permissions(machine: Machine) -> Iterator[Result]:
    host = machine.host
    if host.vendor == "nvidia" and host.nvidia_counters:
        yield Passed("gpu-counters", "every user may read GPU counters")
    elif host.vendor == "nvidia":
        yield Finding(
            "gpu-counters",
            "warning",
            "only administrators may read GPU counters",
            f"local trials of {who_needs('nvidia_counters')} fail but for root; containers get a capability "
            "for them",
            HOW_TO_ALLOW["nvidia_counters"],
        )
    if host.paranoid is None:
        return
    if host.paranoid <= 2:
        yield Passed("perf-events", f"perf_event_paranoid is {host.paranoid}")
        return
    yield Finding(
        "perf-events",
        "warning",
        f"perf_event_paranoid is {host.paranoid}",
        f"{who_needs('perf_events')} record less or nothing of that; kernel and API traces are not touched",
        HOW_TO_ALLOW["perf_events"],
    )


def _room(machine: Machine) -> Iterator[Result]:
    if machine.shm is not None:
        why = "local DataLoader workers and NCCL may run out; containers get resources.shm of their own"
        said, fix = f"/dev/shm has {bytes_text(machine.shm)}", "mount -o remount,size=16G /dev/shm"
        yield (Passed("shm", said) if machine.shm >= SHM_LOW else Finding("shm", "warning", said, why, fix))
    for what, path, free in machine.disks:
        code, said = f"disk-{what}", f"{bytes_text(free)} free in {path}"
        why, fix = _DISK[what]
        yield Passed(code, said) if free >= DISK_LOW[what] else Finding(code, "warning", said, why, fix)


_DISK = {
    "runs": (
        "profiles may be cut off: most collectors write up to gigabytes per trial",
        "free some, or choose another place with --runs",
    ),
    "images": (
        "a vendor's image may not fit: 10 to 25 GiB each",
        "`docker system df` shows what takes room, `docker image prune` frees it",
    ),
}
"""What a full disk means, and how to fix it."""


def _host_profilers(machine: Machine) -> Iterator[Result]:
    for name in tools():
        package = profiler(name).requires
        if package is None:
            continue
        if package in machine.packages:
            yield Passed(name, f"{package} {machine.packages[package]}")
        else:
            yield Finding(
                name,
                "warning",
                f"no {package} in the Python that runs profrun",
                f"local {name} trials work only if the job's own Python has it",
                f"pip install {package}",
            )
    yield from machine.reading
    for one in _expected(machine.host.vendor):
        yield _tool(machine.preflight, one, "on this machine itself")


def _expected(vendor: str) -> list[Profiler]:
    """The profilers with an executable that a machine or an image for this vendor's GPUs should have."""
    found = [profiler(name) for name in tools()]
    return [one for one in found if one.tools and vendor in one.vendors]


def _tool(preflight: Preflight, one: Profiler, where: str) -> Result:
    """A profiler's executable, by the preflight's row."""
    row = preflight.collectors.get(one.name)
    if row is None:
        return Finding(one.name, "warning", "not looked at")
    tool = f"{row.tool} {row.version or ''}".strip() if row.tool else "not there"
    worst = next((finding for finding in gravest_first(row.findings) if finding.severity != "info"), None)
    severity: Severity = "critical" if worst is None else worst.severity
    none_there = f"no {one.name} trials {where}"
    if worst is None:
        found = Finding(one.name, severity, tool, none_there, row.reason or "")
        return Passed(one.name, tool) if row.usable else found
    why = f"{none_there}: {worst.why}" if severity == "critical" else f"{one.name} records less: {worst.why}"
    return Finding(one.name, severity, tool, why, worst.fix)


def _image(machine: Machine, image: ImageAnswer) -> Iterator[Result]:
    if image.preflight is None or image.contents is None:
        yield cannot_ask("image", image.problem, "no collector works in it")
        return
    contents = image.contents
    digest = image.digest.partition("sha256:")[2][:12]
    yield Passed("image", f"{contents.os or 'runs'}, {digest}")
    for name in tools():
        package = profiler(name).requires
        if package is None:
            continue
        version = contents.version_of(package)
        yield (
            Passed(name, f"{package} {version}")
            if version
            else Finding(
                name,
                "critical",
                "not there",
                f"no {name} trials in this image",
                f"use an image with {package}",
            )
        )
    vendor = "amd" if contents.rocm else machine.host.vendor
    for one in _expected(vendor):
        yield _tool(image.preflight, one, "in this image")
    for name in tools():
        own = getattr(profiler(name).part("doctor"), "check_image", None)
        found: Finding | None = own(contents.versions) if own is not None else None
        if found is not None:
            yield found


def _leftovers(machine: Machine) -> Iterator[Result]:
    for left in machine.found.leftovers:
        running = left.status == "running"
        yield Finding(
            "leftover",
            "warning",
            f"container {left.id[:12]} ({left.status}) of {left.trial} in run {left.run}",
            "nobody drives its run; it takes the GPU until it ends" if running else "it only takes room",
            f"`profrun resume {left.run}` or `profrun cancel {left.run}`"
            if running
            else f"docker rm -f {left.id[:12]}",
        )
