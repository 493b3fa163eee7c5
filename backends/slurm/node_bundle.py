"""The in-job part on the nodes' own disks: shell lines that copy it once per node, and that use it. Pure.

Every wrapper and every Python process of a trial imports it. From a shared folder hundreds of ranks would
read it in the same second, so jobs of many ranks copy it to /tmp of each node before the first step.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from profrun.backends.slurm.runtimes import Runtime
from profrun.plans.model import Plan

MANY_RANKS = 16
"""From so many ranks of a trial on the copy is made; fewer read the run's folder, without another step."""

_COPY = r"""
# Many ranks: the in-job part is copied to each node once, and removed at the end.
staged=/tmp/profrun-$SLURM_JOB_ID.$$
on_nodes() {
    srun --overlap --job-name=profrun-bundle --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" \
        --ntasks-per-node=1 sh -c "$1" bundle "$staged" "$run/bundle" </dev/null
}
on_nodes 'umask 077; to=$1.$SLURM_NODEID
    mkdir "$to.part" && cp -r "$2/." "$to.part" && mv "$to.part" "$to"' ||
    echo "profrun: not every node has a copy of the in-job part: ranks on the others use $run/bundle"
trap 'on_nodes "rm -rf \"\$1.\$SLURM_NODEID\" \"\$1.\$SLURM_NODEID.part\""' EXIT"""

_FIND = 'bundle=$1.$SLURM_NODEID; [ -O "$bundle/run.py" ] || bundle=$2;'
"""The copy, if it was made, is this user's, and is seen by the container; else the run's folder."""


@dataclass(frozen=True)
class NodeBundle:
    """Where the wrappers find the in-job part.

    Attributes:
        before: shell lines ahead of the first step; empty where all nodes read the run's folder.
    """

    before: str = ""

    def wrapper(self, first: str = "") -> str:
        """The words that start the wrapper; ``$run`` and ``$trial`` are variables of the script.

        Args:
            first: an assignment in front of the command, whose value each node computes.
        """
        run = f"{first} exec python3".strip()
        if self.before:
            inner = shlex.quote(f'{_FIND} {run} "$bundle/run.py" "$3"')
            return f'sh -c {inner} wrapper "$staged" "$run/bundle" "$trial"'
        if first:
            inner = shlex.quote(f'{run} "$1" "$2"')
            return f'bash -c {inner} wrapper "$run/bundle/run.py" "$trial"'
        return 'python3 "$run/bundle/run.py" "$trial"'


def node_bundle(plan: Plan, how: Runtime) -> NodeBundle:
    """Where the in-job part lies for the trials of a plan, started by this runtime."""
    resources = plan.job.resources
    many = resources.nodes * resources.ranks_per_node >= MANY_RANKS
    return NodeBundle(_COPY if many and how.sees_tmp else "")
