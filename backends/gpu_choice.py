"""Which GPUs of this machine a job gets.

``survey_gpus`` asks the driver who uses them, ``choose`` is the rule, and ``seen_by_caller`` reads the
caller's environment. A number takes free GPUs first, then those that only the caller uses. It never takes one
that somebody else uses: that would disturb them, and the times would be wrong. A job that names such a GPU
gets it, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profrun.backends.host import HostFacts
from profrun.contract.visible_devices import VISIBLE_DEVICES
from profrun.errors import UnavailableError
from profrun.in_job.gpu_source import LibraryError, seen_gpus
from profrun.in_job.gpu_use import GpuUse, amd_uses
from profrun.in_job.nvml import gpu_uses
from profrun.jobs.model import Resources
from profrun.plans.model import Plan

_MIG = "MIG-"


@dataclass(frozen=True)
class GpuSurvey:
    """The GPUs of a machine.

    Attributes:
        uses: all of them, by index.
        unknown: why nothing is known of their use; None where it is known.
    """

    uses: tuple[GpuUse, ...] = ()
    unknown: str | None = None


@dataclass(frozen=True)
class GpuChoice:
    """The GPUs of a job.

    Attributes:
        ids: their indices, or parts of a GPU (``MIG-...``) that the caller's environment names.
        notes: what the user should know of them, one sentence each.
        of: how many GPUs the machine has.
    """

    ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    of: int = 0

    def resolved(self, plan: Plan) -> Plan:
        """The plan whose job names these GPUs, so that a resumed or repeated run has the same ones.

        Where there is nothing to choose from, and for parts of a GPU, the plan stays as it is.
        """
        if not self.ids or len(self.ids) == self.of or not all(one.isdigit() for one in self.ids):
            return plan
        named = tuple(int(one) for one in self.ids)
        return replace(plan, job=replace(plan.job, resources=replace(plan.job.resources, gpus=named)))


def survey_gpus(facts: HostFacts, root: Path = Path("/"), library: str | None = None) -> GpuSurvey:
    """Ask this machine's driver who uses its GPUs. Nothing is changed.

    Args:
        facts: this machine: whose GPUs, and how many.
        root: where its files are (AMD).
        library: path of NVML, None for the driver's own (NVIDIA).
    """
    if facts.vendor == "amd":
        return GpuSurvey(tuple(amd_uses([node.path for node in facts.amd_gpus], root)))
    if facts.vendor == "none":
        return GpuSurvey()
    try:
        uses = tuple(gpu_uses(library))
    except LibraryError as error:
        uses, why = (), f"NVML: {error}"
    else:
        why = "NVML shows another number of GPUs than the kernel's driver"
    if len(uses) == facts.gpus:
        return GpuSurvey(uses)
    return GpuSurvey(tuple(GpuUse(index) for index in range(facts.gpus)), why)


def choose(resources: Resources, found: GpuSurvey, facts: HostFacts, environ: Mapping[str, str]) -> GpuChoice:
    """The GPUs that a job gets. Pure.

    Args:
        resources: of the job. ``auto`` is one GPU where there is one.
        found: the machine's GPUs.
        facts: the caller, and whose GPUs they are.
        environ: the caller's: only GPUs that its ``CUDA_VISIBLE_DEVICES`` (or AMD's variables) lists count.

    Raises:
        UnavailableError: a GPU is not there or not the caller's to use, or too few are free.
    """
    parts = _parts(facts, environ)
    if parts:
        return _chosen_parts(resources, parts, len(found.uses))
    allowed = seen_by_caller(found.uses, facts.vendor, environ)
    mine = [use for use in found.uses if use.index in allowed]
    asked = min(1, len(mine)) if resources.gpus == "auto" else resources.gpus
    if isinstance(asked, tuple):
        taken = _named(asked, found, mine, facts, environ)
    else:
        taken = _counted(asked, found, mine, facts, environ)
    notes = tuple(_busy_note(use, facts.uid) for use in taken if not use.free)
    if found.unknown and not isinstance(asked, tuple) and 0 < len(taken) < len(mine):
        notes += (f"which GPUs are in use could not be told ({found.unknown}); the first ones are taken",)
    return GpuChoice(tuple(str(use.index) for use in taken), notes, len(found.uses))


def seen_by_caller(uses: Sequence[GpuUse], vendor: str, environ: Mapping[str, str]) -> set[int]:
    """Indices of the GPUs that the caller's environment lists; all where it lists none.

    On AMD, HIP's numbers count what ROCR's variable left over. CUDA's variable counts where HIP's is not set.
    """
    first, *others = VISIBLE_DEVICES.get(vendor, ("",))
    second = next((name for name in others if name in environ), "")
    left = list(uses)
    for name in (first, second):
        if name in environ:
            places = seen_gpus({name: environ[name]}, vendor, [use.uuid for use in left])
            left = [left[place] for place in places]
    return {use.index for use in left}


def visible_env(choice: GpuChoice, vendor: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables that show a process these GPUs, and those that must be unset beside them.

    NVIDIA's are numbered as nvidia-smi does, also where the GPUs differ (``CUDA_DEVICE_ORDER``).
    """
    first, *others = VISIBLE_DEVICES[vendor]
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if vendor == "nvidia" else {}
    return {**order, first: ",".join(choice.ids)}, tuple(others)


def _parts(facts: HostFacts, environ: Mapping[str, str]) -> list[str]:
    """Parts of GPUs (MIG) that the caller's environment names."""
    listed = environ.get("CUDA_VISIBLE_DEVICES", "") if facts.vendor == "nvidia" else ""
    return [one.strip() for one in listed.split(",") if one.strip().startswith(_MIG)]


def _chosen_parts(resources: Resources, parts: Sequence[str], of: int) -> GpuChoice:
    asked = 1 if resources.gpus == "auto" else resources.gpus
    if isinstance(asked, tuple) or asked > len(parts):
        raise UnavailableError(
            f"the job asks for {_asked_text(asked)}, and CUDA_VISIBLE_DEVICES lists "
            f"{len(parts)} part{'s' if len(parts) > 1 else ''} of GPUs (MIG)",
            fix=f"set resources.gpus to a number up to {len(parts)}, or unset CUDA_VISIBLE_DEVICES",
        )
    return GpuChoice(tuple(parts[:asked]), (), of)


def _named(
    asked: tuple[int, ...],
    found: GpuSurvey,
    mine: Sequence[GpuUse],
    facts: HostFacts,
    environ: Mapping[str, str],
) -> list[GpuUse]:
    """The GPUs of these indices, in that order."""
    there = {use.index: use for use in found.uses}
    missing = [index for index in asked if index not in there]
    if missing:
        raise UnavailableError(
            f"the job asks for {_asked_text(asked)}, and {_there(len(there))}",
            fix=f"name GPUs from 0 to {len(there) - 1}" if there else "run it where the GPUs are",
        )
    hidden = [index for index in asked if there[index] not in mine]
    if hidden:
        raise UnavailableError(
            f"the job asks for {_asked_text(asked)}, and {_variable(facts, environ)} leaves out "
            f"{', '.join(map(str, hidden))}",
            fix="name GPUs that it lists, or change it",
        )
    return [there[index] for index in asked]


def _counted(
    asked: int, found: GpuSurvey, mine: Sequence[GpuUse], facts: HostFacts, environ: Mapping[str, str]
) -> list[GpuUse]:
    """So many GPUs: free ones, then those that only the caller uses."""
    if asked > len(mine):
        hidden = len(mine) < len(found.uses)
        lists = f"{_variable(facts, environ)} lists {len(mine)}"
        raise UnavailableError(
            f"the job asks for {_asked_text(asked)}, and {lists if hidden else _there(len(mine))}",
            fix="set resources.gpus to auto, or run it where the GPUs are; `profrun doctor` says more",
        )
    free = [use for use in mine if use.free]
    own = [use for use in mine if not use.free and use.only_of(facts.uid)]
    if asked > len(free) + len(own):
        busy = [use for use in mine if not use.free and use not in own]
        raise UnavailableError(
            f"the job asks for {_asked_text(asked)}, and {len(free)} of {len(mine)} "
            f"{'is' if len(free) == 1 else 'are'} free",
            why="in use: " + ", ".join(use.text() for use in busy),
            fix=f"wait for them, or name GPUs to share them all the same: "
            f"resources.gpus: {[use.index for use in [*free, *own, *busy][:asked]]}",
        )
    own.sort(key=lambda use: use.memory_used or 0)
    return sorted([*free, *own][:asked], key=lambda use: use.index)


def _busy_note(use: GpuUse, uid: int) -> str:
    whose = "you use it yourself" if use.only_of(uid) else "it is in use"
    return f"{use.text()} is taken, and {whose}: times and memory are not those of a GPU alone"


def _variable(facts: HostFacts, environ: Mapping[str, str]) -> str:
    given = [f"{name}={environ[name]}" for name in VISIBLE_DEVICES.get(facts.vendor, ()) if name in environ]
    return " with ".join(given)


def _asked_text(asked: int | tuple[int, ...]) -> str:
    if isinstance(asked, tuple):
        return f"GPU {', '.join(map(str, asked))}"
    return f"{asked} GPU{'s' if asked > 1 else ''}"


def _there(count: int) -> str:
    return f"this machine has {count}" if count else "no GPU was found here"
