"""Settings of a cluster: the job's ``cluster`` block over a profile of the user's clusters.yaml.

The file is ``$PROFRUN_CLUSTERS``, else ``~/.config/profrun/clusters.yaml`` (XDG); each top-level key is a
profile with the keys of the ``cluster`` block (docs/job-spec.md). ``settle`` puts the profile's values into
the job, so that ``resolved.yaml`` repeats the run without the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

from profrun.backends.launchers import launches
from profrun.contract.command import Vendor
from profrun.contract.paths import TrialPaths
from profrun.contract.states import Status
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job
from profrun.plans.model import Plan, Trial
from profrun.store.documents import finalising

Choice = Literal["one", "each"]
"""Of ``cluster.allocation``."""
AMD_TYPE = re.compile(r"mi\d{3}[a-z]?")
NVIDIA_TYPE = re.compile(r"v100|t4|a\d{2,3}|l\d{1,2}s?|g?[hb]\d{3}|gb\d{3}|rtx.*|tesla.*")
"""GPU types as clusters call them in their GRES, e.g. mi300x and h200."""


def profiles_file(environ: Mapping[str, str] | None = None) -> Path:
    """Where the user's cluster profiles are."""
    around = os.environ if environ is None else environ
    if around.get("PROFRUN_CLUSTERS"):
        return Path(around["PROFRUN_CLUSTERS"])
    config = around.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(config) / "profrun" / "clusters.yaml"


def load_profiles(path: Path) -> dict[str, ClusterSettings]:
    """Profiles by name, checked as strictly as a job's ``cluster`` block.

    Raises:
        UsageError: the file is wrong; one line a mistake.
    """
    from profrun.jobs.cluster import SITE
    from profrun.jobs.kinds import BAD
    from profrun.jobs.nodes import parse
    from profrun.jobs.problems import Problems
    from profrun.jobs.tables import MapOf

    problems = Problems(str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}", why=str(error), fix="check the cluster profiles") from None
    root = parse(text, problems)
    kind = MapOf(SITE, r"[A-Za-z0-9][A-Za-z0-9_.-]*", "letters, digits, '.', '_' and '-'", "{name: {...}}")
    values = kind.read(root, "profiles", problems)
    if values is BAD or problems.found:
        raise problems.error()
    return dict(values)


def settle(plan: Plan, file: Path | None = None) -> Plan:
    """The plan with every ``profile`` replaced by what it says; the same plan where none is named.

    Raises:
        UsageError: there is no such profile, or the file is wrong.
    """
    cluster = plan.job.cluster
    if not any(block.profile for block in (cluster, *cluster.sites.values())):
        return plan
    path = file or profiles_file()
    if not path.exists():
        raise UsageError(f"the job names a cluster profile, but there is no {path}", fix="write it there")
    profiles = load_profiles(path)
    sites = {name: _merged(site, profiles, path) for name, site in cluster.sites.items()}
    settled = replace(_merged(cluster, profiles, path), sites=sites)
    return replace(plan, job=replace(plan.job, cluster=settled))


def _merged(block: ClusterSettings, profiles: Mapping[str, ClusterSettings], path: Path) -> ClusterSettings:
    name = block.profile
    if name is None:
        return block
    if name not in profiles:
        raise UsageError(
            f"{path} has no cluster profile {name!r}", fix=f"it has {', '.join(sorted(profiles)) or 'none'}"
        )
    return replace(block.over(profiles[name]), profile=None)


def by_site(trials: Sequence[Trial]) -> dict[str | None, list[Trial]]:
    """Trials of each site, in plan order. Trials of different sites are queued apart."""
    grouped: dict[str | None, list[Trial]] = {}
    for trial in trials:
        grouped.setdefault(trial.site, []).append(trial)
    return grouped


def settle_allocation(plan: Plan, default: Callable[[Sequence[Trial], ClusterSettings], Choice]) -> Plan:
    """The plan whose cluster block says for each site whether its trials share an allocation, or nodes.

    Args:
        default: for the trials of a site whose block does not say it.

    Raises:
        UsageError: the trials are to share an allocation and to run at the same time.
    """
    cluster = plan.job.cluster
    chosen: dict[str | None, Choice] = {}
    for site, trials in by_site(plan.trials).items():
        settings = cluster.of_site(site)
        if settings.allocation == "one" and (settings.parallel or 1) > 1:
            raise UsageError(
                "the trials cannot share one allocation and run at the same time",
                why=f"cluster.allocation is one, and cluster.parallel is {settings.parallel}",
                fix="set cluster.allocation to each, or leave out cluster.parallel",
            )
        chosen[site] = settings.allocation or default(trials, settings)
    if None in chosen:
        cluster = replace(cluster, allocation=chosen[None])
    sites = {
        name: replace(block, allocation=chosen.get(name, block.allocation))
        for name, block in cluster.sites.items()
    }
    return replace(plan, job=replace(plan.job, cluster=replace(cluster, sites=sites)))


def vendor_of(settings: ClusterSettings, plan: Plan) -> Vendor:
    """nvidia, amd, none or auto: as stated, else by the GPU type's name, else the plan's."""
    if settings.vendor:
        return settings.vendor
    kind = (settings.gpu_type or "").lower()
    if AMD_TYPE.match(kind):
        return "amd"
    if NVIDIA_TYPE.match(kind):
        return "nvidia"
    return cast(Vendor, plan.vendor)


def gpus_per_node(job: Job, settings: ClusterSettings) -> int:
    """GPUs to ask for on each node; ``auto``: one per rank where the cluster block says something of GPUs.

    Raises:
        UsageError: the job names GPUs of one machine.
    """
    asked = job.resources.gpus
    if isinstance(asked, tuple):
        raise UsageError(
            f"resources.gpus is {list(asked)}, and on a cluster the scheduler chooses the GPUs",
            fix=f"write gpus: {len(asked)}, or use --backend local or docker",
        )
    if asked != "auto":
        return int(asked)
    stated = settings.gpu_type or settings.gpu_directive or settings.gpu_resource
    return job.resources.ranks_per_node if stated and settings.gpu_directive != "none" else 0


def is_launcher(trial: Trial) -> bool:
    """Whether the command starts its ranks itself (torchrun), so that each node gets one task."""
    return launches(trial.argv)


def phase_of(status: Status, trial: TrialPaths) -> Status:
    """The status, but ``finalising`` where the wrapper's ``phase`` file says that the program has ended."""
    return finalising(trial) or status if status.state == "running" else status
