"""The nodes that the trials of a site share: those of its first trial, kept in ``kubernetes/nodes.json``.

A and B on different nodes differ by the nodes. So the pods of later trials have an affinity to the nodes of
the first one, also after ``profrun resume``, as long as these nodes can be used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from profrun.backends.cluster import Choice, settle_allocation
from profrun.backends.kubernetes.api import Api
from profrun.backends.kubernetes.job_files import jobs_folder, kept
from profrun.backends.kubernetes.objects import ApiObject, PodHandle, status_part
from profrun.backends.kubernetes.refusals import http_status
from profrun.backends.kubernetes.resource_groups import NodeChoice
from profrun.backends.kubernetes.states import newest_pods
from profrun.contract.codec import from_json, to_json
from profrun.errors import InputError, ProfrunError
from profrun.jobs.cluster import ClusterSettings
from profrun.plans.model import Plan, Trial
from profrun.store.files import read_json, write_json
from profrun.store.runs import Run


@dataclass(frozen=True)
class Held:
    """The nodes of a site.

    Attributes:
        since: number of the first Job that had them; Jobs before it ran elsewhere.
        nodes: their names; empty until that Job has some.
    """

    since: int = 0
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodesFile:
    """``kubernetes/nodes.json``.

    Attributes:
        sites: name of the site, '' where the job names none -> its nodes.
        trials: id -> the nodes on which its pods last ran, by rank of the pod.
    """

    sites: Mapping[str, Held] = field(default_factory=dict)
    trials: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def settled(plan: Plan) -> Plan:
    """The plan whose cluster block says for each site whether its trials share nodes.

    Raises:
        UsageError: they are to share nodes and to run at the same time.
    """
    return settle_allocation(plan, _default)


def _default(trials: Sequence[Trial], settings: ClusterSettings) -> Choice:
    """``one`` for several trials that are not to run at the same time."""
    return "each" if len(trials) < 2 or (settings.parallel or 1) > 1 else "one"


def read_nodes(run: Run) -> NodesFile:
    """What is known; nothing where the file is missing or damaged."""
    with contextlib.suppress(InputError):
        data = read_json(jobs_folder(run) / "nodes.json")
        return from_json(NodesFile, data) if data else NodesFile()
    return NodesFile()


def with_pods(
    known: NodesFile, jobs: Sequence[tuple[list[str], PodHandle]], pods: Sequence[ApiObject]
) -> NodesFile:
    """What is known together with what these pods tell. Pure.

    Args:
        jobs: trials and handle of the run's Jobs, in the order in which they were made.
    """
    last = newest_pods(pods)
    sites, trials = dict(known.sites), dict(known.trials)
    for number, (members, handle) in enumerate(jobs):
        for index, trial in enumerate(members):
            indexes = handle.indexes if handle.nodes > 1 else [index]
            found = [
                str((last.get((handle.job, i)) or {}).get("spec", {}).get("nodeName") or "") for i in indexes
            ]
            if not all(found):
                continue
            trials[trial] = tuple(found)
            held = sites.setdefault(handle.site or "", Held())
            if not held.nodes and number >= held.since:
                sites[handle.site or ""] = Held(number, tuple(sorted(set(found))))
    return NodesFile(sites, trials)


def note_nodes(run: Run, pods: Sequence[ApiObject]) -> NodesFile:
    """Keep the nodes of these pods; returns all that is known."""
    known = read_nodes(run)
    found = with_pods(known, list(kept(run))[::-1], pods)
    if found != known:
        write_json(jobs_folder(run) / "nodes.json", to_json(found))
    return found


def choose_nodes(api: Api, run: Run, site: str | None, number: int, pods: Sequence[ApiObject]) -> NodeChoice:
    """Where the next Job of a site is to run.

    The nodes are asked for, which needs a right that not every account has: without it the pods only prefer
    them, because nothing else would tell that they never come back.

    Args:
        number: of the Job.
        pods: of the run's Jobs.
    """
    known = note_nodes(run, pods)
    nodes = known.sites.get(site or "", Held()).nodes
    problems, firm = [], True
    for name in nodes:
        try:
            problem = node_problem(api.node(name))
        except ProfrunError as error:
            if http_status(error) != 403:
                raise
            problem, firm = None, False
        problems += [f"{name} {problem}"] if problem else []
    if not problems:
        return NodeChoice(nodes, firm)
    write_json(
        jobs_folder(run) / "nodes.json",
        to_json(NodesFile({**known.sites, site or "": Held(number)}, known.trials)),
    )
    which = "node" if len(nodes) == 1 else "nodes"
    return NodeChoice(
        note=f"it takes other nodes than the trials before had: of their {which}, {' and '.join(problems)}"
    )


def node_problem(node: ApiObject | None) -> str | None:
    """Why no pod can be started on a node; None: it can.

    Args:
        node: None when it is not there any more.
    """
    if node is None:
        return "is gone"
    if (node.get("spec") or {}).get("unschedulable"):
        return "is cordoned"
    for condition in status_part(node).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            return "is not ready"
    return None
