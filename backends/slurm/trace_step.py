"""The srun that makes the trace of a trial on a compute node, not where profrun runs. Pure."""

from __future__ import annotations

from profrun.backends.slurm.script import node_options
from profrun.jobs.cluster import ClusterSettings

CPUS = 4
"""As many as the process that makes a trace has threads (``traces.writer.MAX_THREADS``)."""
WAIT_S = 600
"""How long a free node is waited for, seconds; then the trace is made where profrun runs."""


def trace_words(settings: ClusterSettings) -> tuple[str, ...]:
    """The words before the command; none where ``cluster.normalize`` is not ``node``.

    The job needs no GPU: it may start on a node whose GPUs are taken. Inside an allocation it is a step.
    """
    if settings.normalize != "node":
        return ()
    words = ["srun", "--job-name=profrun-trace", "--overlap", "--nodes=1", "--ntasks=1"]
    words += [f"--cpus-per-task={CPUS}", f"--immediate={WAIT_S}", "--input=none"]
    return (*words, *node_options(settings), *(settings.extra or ()))
