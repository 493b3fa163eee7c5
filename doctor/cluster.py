"""What a cluster's nodes can collect: the wrapper's own preflight, run there by a short probe job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profrun.backends.node_probe import NodeAnswer, probe_job
from profrun.contract.codec import to_json
from profrun.contract.profilers import NEUTRAL, become
from profrun.errors import UsageError


def ask(
    backend: str,
    root: Path,
    *,
    partition: str | None = None,
    profile: str | None = None,
    image: str | None = None,
    gpus: int | None = None,
) -> NodeAnswer:
    """Submit a probe and wait for its answer, at most ten minutes.

    Args:
        root: the runs folder, which the nodes see.
        partition: of Slurm; wins over the profile's.
        profile: of the user's clusters.yaml.
        image: reference; None: none on Slurm, the vendor's default on Kubernetes.
        gpus: to ask for; None: as the profile says.

    Raises:
        UsageError: there is no such profile, or its settings do not fit together.
        UnavailableError: the cluster refuses, the queue takes longer, or the node could not run it.
    """
    from profrun.backends.cluster import settle
    from profrun.jobs.cluster import ClusterSettings
    from profrun.plans.model import Plan

    if backend == "kubernetes" and partition:
        raise UsageError(
            "--partition is Slurm's", fix="name a profile with --profile; it may set node_selector"
        )
    cluster = ClusterSettings(profile=profile or None, partition=partition or None)
    job = probe_job(cluster, image or ("none" if backend == "slurm" else "auto"), gpus)
    job = settle(Plan(job, ())).job
    if backend == "slurm":
        from profrun.backends.slurm.probe import probe as slurm_probe

        return slurm_probe(job, root)
    from profrun.backends.kubernetes.probe import probe as kubernetes_probe

    return kubernetes_probe(job, root)


def missing(node: NodeAnswer, collectors: Sequence[str]) -> list[str]:
    """Those of the asked-for collectors that the node cannot run.

    Raises:
        UsageError: there is no such collector.
    """
    rows = node.preflight.collectors
    found = []
    for name in collectors:
        if name not in rows and name not in NEUTRAL:
            raise UsageError(f"no collector {name!r}", fix=f"choose among {', '.join((*rows, *NEUTRAL))}")
        profiler = become(name, node.preflight.vendor) if name in NEUTRAL else None
        row = rows.get(name) or (rows.get(profiler.name) if profiler is not None else None)
        if row is None or not row.usable:
            found.append(name)
    return found


def report(backend: str, node: NodeAnswer) -> dict[str, Any]:
    """The answer as JSON-safe values."""
    return {
        "backend": backend,
        "node": node.node,
        "waited_s": round(node.waited_s, 3),
        "vendor": node.preflight.vendor,
        "gpus": to_json(node.preflight.gpus),
        "collectors": to_json(node.preflight.collectors),
    }


def lines(node: NodeAnswer) -> list[str]:
    """The answer for a person: one line for each collector and one for each finding."""
    found = [f"node {node.node}, GPUs {node.preflight.vendor}, after {node.waited_s:.0f} s"]
    for name, row in node.preflight.collectors.items():
        version = f" {row.version}" if row.version else ""
        reason = f": {row.reason}" if row.reason else ""
        found.append(f"{name}{version}: {'yes' if row.usable else 'no'}{reason}")
        found += [f"  {finding.severity}: {finding}" for finding in row.findings]
    return found
