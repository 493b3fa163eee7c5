"""The srun that makes traces on a node."""

from __future__ import annotations

from profrun.backends.slurm.backend import SlurmBackend
from profrun.backends.slurm.trace_step import CPUS, trace_words
from profrun.jobs.cluster import ClusterSettings
from profrun.traces.writer import MAX_THREADS
from tests.backends.plans import plan


def test_traces_are_made_here_unless_the_job_says_otherwise() -> None:
    assert trace_words(ClusterSettings()) == ()
    assert trace_words(ClusterSettings(normalize="driver")) == ()


def test_the_job_of_one_task_goes_where_the_trials_go_and_asks_for_no_gpu() -> None:
    made = plan(
        resources="gpus: 4, nodes: 2",
        cluster="normalize: node, partition: gpu, account: ml, extra: ['--comment=x'], gpu_type: h200",
    )
    assert SlurmBackend().trace_words(made, None) == (
        *("srun", "--job-name=profrun-trace", "--overlap", "--nodes=1", "--ntasks=1", "--cpus-per-task=4"),
        *("--immediate=600", "--input=none", "--partition=gpu", "--account=ml", "--comment=x"),
    )


def test_it_has_a_core_for_each_thread() -> None:
    assert CPUS == MAX_THREADS
