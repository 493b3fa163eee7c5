"""The checks: from what was found to lines that say what it means and how to fix it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from profrun.backends.docker.gpus import CDI_API
from profrun.backends.docker.survey import ImageAnswer
from profrun.backends.privileges import HOW_TO_ALLOW, PERFMON_API, who_needs
from profrun.doctor.model import COLLECTORS, Line, Machine, Verdict
from profrun.errors import ProfrunError

GIB = 1 << 30
SHM_LOW = GIB
DISK_LOW = {"runs": 2 * GIB, "images": 30 * GIB}
"""A vendor's PyTorch image takes 10 to 25 GiB unpacked."""


def lines(machine: Machine) -> list[Line]:
    """All lines, in the order in which a person would look."""
    found = [*_gpus(machine), *_engine(machine), *_access(machine), *_permissions(machine), *_room(machine)]
    found += [*_host_profilers(machine), *_leftovers(machine)]
    for inside in machine.found.images:
        found += _image(machine, inside)
    return found


def verdicts(machine: Machine) -> list[Verdict]:
    """For each collector: does it work here, and in which image."""
    found = []
    for name in COLLECTORS:
        row = machine.preflight.get("collectors", {}).get(name, {})
        inside = {item.reference: _usable(item, name) for item in machine.found.images}
        reasons = [f"host: {reason}" for reason in _reasons(row)]
        for item in machine.found.images:
            if not inside[item.reference]:
                why = (
                    [str(item.problem)]
                    if item.problem
                    else _reasons(item.preflight.get("collectors", {}).get(name, {}))
                )
                reasons += [f"{item.reference}: {reason}" for reason in why]
        local = bool(row.get("usable")) and not (name == "torch" and machine.torch is None)
        if name == "torch" and machine.torch is None:
            reasons.insert(0, "host: no torch in the Python that runs profrun")
        found.append(Verdict(name, local, inside, tuple(reasons)))
    return found


def _usable(inside: ImageAnswer, collector: str) -> bool:
    row = inside.preflight.get("collectors", {}).get(collector, {})
    if inside.problem or (collector == "torch" and inside.contents and not inside.contents.get("torch")):
        return False
    return bool(row.get("usable"))


def _reasons(row: object) -> list[str]:
    """Why a collector is not usable, by the wrapper's preflight."""
    if not isinstance(row, dict) or row.get("usable"):
        return []
    errors = [item for item in row.get("findings", []) if item.get("severity") == "critical"]
    return [f"{item['what']} ({item['why']})" for item in errors] or [
        str(row.get("reason") or "not looked at")
    ]


def _gpus(machine: Machine) -> Iterator[Line]:
    host = machine.host
    if host.vendor == "none":
        yield Line(
            "gpu",
            "host",
            "warn",
            "no GPU",
            "torch and nsys record the CPU side only; ncu and rocprof have nothing to record",
            "if there is one, install its kernel driver (then /proc/driver/nvidia or /dev/kfd exists)",
        )
        return
    names = ", ".join(machine.gpu_names) or f"{host.gpus} {host.vendor} GPU{'s' if host.gpus > 1 else ''}"
    driver = ".".join(map(str, host.nvidia_driver or ())) if host.vendor == "nvidia" else ""
    yield Line("gpu", "host", "ok", names + (f", driver {driver}" if driver else ""))


def _engine(machine: Machine) -> Iterator[Line]:
    engine = machine.found.engine
    if engine is None:
        yield _cannot(machine.found.problem, "engine", "host", "--backend docker cannot run; local can")
        return
    kind = " (rootless)" if machine.host.rootless else ""
    yield Line(
        "engine",
        "host",
        "ok",
        f"{engine.name} {engine.version}, API {engine.api}, {engine.architecture}{kind}",
    )
    if not machine.host.raise_limits:
        yield Line(
            "engine-limits",
            "host",
            "warn",
            "the engine may not raise resource limits",
            "containers keep its limit of locked memory: NCCL over InfiniBand may not register buffers",
            "raise LimitMEMLOCK for the engine, or the user's memlock limit for a rootless one",
        )
    if _number(engine.api) < PERFMON_API:
        yield Line(
            "engine-age",
            "host",
            "warn",
            f"the engine's API is {engine.api}",
            "it does not know CAP_PERFMON: trials that need it get the wider SYS_ADMIN",
            "Docker 23 or later",
        )


def _cannot(problem: ProfrunError | None, check: str, where: str, means: str) -> Line:
    """What could not be asked, and why."""
    if problem is None:
        return Line(check, where, "fail", "no container engine answers", means)
    return Line(
        check,
        where,
        "fail",
        f"{problem.what}: {problem.why}" if problem.why else problem.what,
        means,
        problem.fix,
    )


def _access(machine: Machine) -> Iterator[Line]:
    """How containers get the GPUs."""
    host, engine = machine.host, machine.found.engine
    if engine is None or host.vendor == "none":
        return
    cdi = host.nvidia_cdi if host.vendor == "nvidia" else host.amd_cdi
    if cdi and _number(engine.api) >= CDI_API:
        yield Line("gpu-access", "host", "ok", f"a CDI specification for {host.vendor}")
    elif host.vendor == "nvidia" and "nvidia" in engine.runtimes:
        yield Line("gpu-access", "host", "ok", "the NVIDIA container runtime")
    elif host.vendor == "nvidia":
        yield Line(
            "gpu-access",
            "host",
            "fail",
            "neither a CDI specification nor NVIDIA's container runtime",
            "no container gets a GPU: every collector in containers records the CPU only",
            "install nvidia-container-toolkit, then `nvidia-ctk runtime configure --runtime=docker`",
        )
    else:
        how = (
            "AMD's container runtime"
            if host.amd_runtime
            else "/dev/kfd and render nodes, by number of their group"
        )
        yield Line("gpu-access", "host", "ok", how)


def _permissions(machine: Machine) -> Iterator[Line]:
    host = machine.host
    if host.vendor == "nvidia":
        if host.nvidia_counters:
            yield Line("gpu-counters", "host", "ok", "every user may read GPU counters")
        else:
            yield Line(
                "gpu-counters",
                "host",
                "warn",
                "only administrators may read GPU counters",
                f"local trials of {who_needs('nvidia_counters')} fail but for root; containers get a "
                "capability for them",
                HOW_TO_ALLOW["nvidia_counters"],
            )
    if host.paranoid is None:
        return
    if host.paranoid <= 2:
        yield Line("perf-events", "host", "ok", f"perf_event_paranoid is {host.paranoid}")
    else:
        yield Line(
            "perf-events",
            "host",
            "warn",
            f"perf_event_paranoid is {host.paranoid}",
            f"{who_needs('perf_events')} cannot record that or record less of it, without a word; "
            "kernel and API traces are not touched",
            HOW_TO_ALLOW["perf_events"],
        )


def _room(machine: Machine) -> Iterator[Line]:
    if machine.shm is not None:
        enough = machine.shm >= SHM_LOW
        yield Line(
            "shm",
            "host",
            "ok" if enough else "warn",
            f"/dev/shm has {_size(machine.shm)}",
            None
            if enough
            else "local DataLoader workers and NCCL may run out; containers get resources.shm of their own",
            None if enough else "mount -o remount,size=16G /dev/shm",
        )
    for what, path, free in machine.disks:
        enough = free >= DISK_LOW[what]
        yield Line(
            f"disk-{what}",
            "host",
            "ok" if enough else "warn",
            f"{_size(free)} free in {path}",
            None if enough else _DISK_MEANS[what],
            None if enough else _DISK_FIX[what],
        )


_DISK_MEANS = {
    "runs": "profiles of every collector may be cut off: nsys and rocprof write up to gigabytes a trial",
    "images": "a vendor's image may not fit: 10 to 25 GiB each",
}
_DISK_FIX = {
    "runs": "free some, or choose another place with --runs",
    "images": "`docker system df` shows what takes room, `docker image prune` frees it",
}


def _host_profilers(machine: Machine) -> Iterator[Line]:
    rows = machine.preflight.get("collectors", {})
    if machine.torch:
        yield Line("torch", "host", "ok", f"torch {machine.torch}")
    else:
        yield Line(
            "torch",
            "host",
            "warn",
            "no torch in the Python that runs profrun",
            "local torch trials work only if the job's own Python has it",
            "pip install torch",
        )
    if machine.parser:
        yield Line("torch-traces", "host", "ok", "read by the compiled parser")
    else:
        yield Line(
            "torch-traces",
            "host",
            "warn",
            "the compiled parser is not there",
            "traces of torch.profiler are read as exactly, but more slowly",
            "install a C compiler (cc), then install profrun again; unset PROFRUN_COMPILED if it is 0",
        )
    for name in _relevant(machine, None):
        yield _profiler(rows.get(name, {}), name, "host")


def _profiler(row: object, name: str, where: str) -> Line:
    """A collector's line from the preflight's row."""
    if not isinstance(row, dict) or not row:
        return Line(name, where, "warn", "not looked at")
    tool = f"{row.get('tool')} {row.get('version') or ''}".strip() if row.get("tool") else "not there"
    worst = next((item for item in row.get("findings", []) if item["severity"] != "info"), None)
    if row.get("usable") and worst is None:
        return Line(name, where, "ok", tool)
    if worst is None:
        return Line(
            name,
            where,
            "fail",
            tool,
            f"no {name} trials {_there(where)}",
            str(row.get("reason") or "") or None,
        )
    if worst["severity"] == "critical":
        return Line(
            name, where, "fail", tool, f"no {name} trials {_there(where)}: {worst['why']}", worst["fix"]
        )
    return Line(name, where, "warn", tool, f"{name} records less: {worst['why']}", worst["fix"])


def _there(where: str) -> str:
    return "on this machine itself" if where == "host" else "in this image"


def _image(machine: Machine, inside: ImageAnswer) -> Iterator[Line]:
    where = inside.reference
    if inside.problem:
        yield _cannot(inside.problem, "image", where, "no collector works in it")
        return
    digest = inside.digest.partition("sha256:")[2][:12]
    yield Line("image", where, "ok", f"{inside.contents.get('os') or 'runs'}, {digest}")
    torch = inside.contents.get("torch")
    if torch:
        yield Line("torch", where, "ok", f"torch {torch['version']}")
    else:
        yield Line(
            "torch", where, "fail", "not there", "no torch trials in this image", "use an image with PyTorch"
        )
    for name in _relevant(machine, inside):
        yield _profiler(inside.preflight.get("collectors", {}).get(name, {}), name, where)
    yield from _nvtx(inside)


def _relevant(machine: Machine, inside: ImageAnswer | None) -> tuple[str, ...]:
    """The profilers that the host, or an image of its kind, is expected to have for this machine's GPU."""
    if machine.host.vendor == "amd" or (inside and inside.contents.get("rocm")):
        return ("rocprof",)
    return ("nsys", "ncu") if machine.host.vendor == "nvidia" else ("nsys",)


def _nvtx(inside: ImageAnswer) -> Iterator[Line]:
    """Ranges of Python's nvtx package that this nsys would lose."""
    from profrun.collectors.nsys.wrap import nvtx_recordable

    nsys = ((inside.contents.get("profilers") or {}).get("nsys") or {}).get("version")
    nvtx = inside.contents.get("nvtx")
    if nsys and nvtx and nvtx_recordable(_number(nvtx), _number(nsys)) is False:
        yield Line(
            "nvtx",
            inside.reference,
            "warn",
            f"nvtx {nvtx} with nsys {nsys}",
            "ranges that the workload itself makes with this package vanish in nsys; profrun's own do not",
            "pip install nvtx==0.2.11 in the image, or a newer nsys",
        )


def _leftovers(machine: Machine) -> Iterator[Line]:
    for left in machine.found.leftovers:
        yield Line(
            "leftover",
            "host",
            "warn",
            f"container {left.id[:12]} ({left.status}) of {left.trial} in run {left.run}",
            "nobody drives its run; it takes the GPU until it ends"
            if left.status == "running"
            else "it only takes room",
            f"`profrun resume {left.run}` or `profrun cancel {left.run}`"
            if left.status == "running"
            else f"docker rm -f {left.id[:12]}",
        )


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _size(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size >> 20} MiB"
