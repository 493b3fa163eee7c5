"""What a cluster's nodes can collect: the wrapper's own preflight, run there by a short probe job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profrun.errors import UsageError

_WORDS = {"amd": {"timeline": "rocprof", "counters": "rocprof"}}


@dataclass(frozen=True)
class Node:
    """One node's answer.

    Attributes:
        backend: slurm or kubernetes.
        name: host name of the node, or of the pod.
        waited_s: seconds from submitting the probe to its answer.
        preflight: ``{vendor, gpus, collectors: {name: {usable, version, findings, reason}}}``.
    """

    backend: str
    name: str
    waited_s: float
    preflight: Mapping[str, Any]

    @property
    def collectors(self) -> Mapping[str, Mapping[str, Any]]:
        """What the preflight says of each collector."""
        found: Mapping[str, Mapping[str, Any]] = self.preflight["collectors"]
        return found


def ask(
    backend: str,
    root: Path,
    *,
    partition: str | None = None,
    profile: str | None = None,
    image: str | None = None,
    gpus: int | None = None,
) -> Node:
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
    from profrun.backends.node_probe import probe_job
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

        answer = slurm_probe(job, root)
    else:
        from profrun.backends.kubernetes.probe import probe as kubernetes_probe

        answer = kubernetes_probe(job, root)
    return Node(backend, answer.node, answer.waited_s, answer.preflight)


def missing(node: Node, collectors: Sequence[str]) -> list[str]:
    """Those of the asked-for collectors that the node cannot run.

    Raises:
        UsageError: there is no such collector.
    """
    words = _WORDS.get(str(node.preflight.get("vendor")), {"timeline": "nsys", "counters": "ncu"})
    found = []
    for name in collectors:
        row = node.collectors.get(name) or node.collectors.get(words.get(name, ""))
        if row is None:
            raise UsageError(f"no collector {name!r}", fix=f"choose among {', '.join(node.collectors)}")
        if not row["usable"]:
            found.append(name)
    return found


def report(node: Node) -> dict[str, Any]:
    """The answer as JSON-safe values."""
    return {
        "backend": node.backend,
        "node": node.name,
        "waited_s": round(node.waited_s, 3),
        "vendor": node.preflight.get("vendor"),
        "gpus": node.preflight.get("gpus"),
        "collectors": {name: dict(row) for name, row in node.collectors.items()},
    }


def words(node: Node) -> list[str]:
    """The answer for a person, one line a collector and one a finding."""
    found = [f"node {node.name}, GPUs {node.preflight.get('vendor')}, after {node.waited_s:.0f} s"]
    for name, row in node.collectors.items():
        version = f" {row['version']}" if row.get("version") else ""
        reason = f": {row['reason']}" if row.get("reason") else ""
        found.append(f"{name}{version}: {'yes' if row['usable'] else 'no'}{reason}")
        for finding in row.get("findings") or ():
            parts = (finding.get("what"), finding.get("why"), finding.get("fix"))
            found.append(f"  {finding.get('severity')}: " + "; ".join(str(part) for part in parts if part))
    return found
