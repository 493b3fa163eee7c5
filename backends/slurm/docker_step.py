"""The container of a rank under ``runtime: docker``: a shell script that each task of the step runs. Pure.

The engine is no part of the job, so nothing of the job's limits reaches its containers by itself: the script
reads in the task what Slurm has given it (GPUs, cores, memory) and hands over exactly that. It cannot be done
before srun, because each node has its own. With cgroups CUDA_VISIBLE_DEVICES counts inside the job's own
GPUs, where every job has a 0; only ``SLURM_STEP_GPUS`` names the node's devices (man srun).
"""

from __future__ import annotations

import shlex
from pathlib import Path

from profrun.backends.cluster import gpus_per_node
from profrun.backends.privileges import CONFINED, tmpfs
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.model import Job

PASSED = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"),
    *("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_JOB_ID", "SLURMD_NODENAME"),
    *("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
)
"""Variables that a container does not get by itself. Those that select GPUs are not among them: inside, the
devices that were handed over count from 0."""
KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
"""GPUs in the order in which ROCm and Slurm number them; ``drm_render_minor`` of a CPU is 0."""

_SCRIPT = r"""
limits=(--cpuset-cpus="$(awk '/^Cpus_allowed_list/ {{print $2}}' /proc/self/status)")
memory=${{SLURM_MEM_PER_NODE:-$((${{SLURM_MEM_PER_CPU:-0}} * ${{SLURM_CPUS_ON_NODE:-0}}))}}
memory=$((memory / ${{SLURM_NTASKS_PER_NODE:-1}}))
# NCCL registers memory; an engine without CAP_SYS_RESOURCE (bit 24) may not raise that limit.
caps=$(awk '/^CapEff/ {{print $2}}' "/proc/$(cat /var/run/docker.pid 2>/dev/null)/status" 2>/dev/null)
if (((0x${{caps:-1000000}} >> 24) & 1)); then limits+=(--ulimit=memlock=-1); fi
if [ "$memory" -gt 0 ]; then limits+=(--memory="${{memory}}m" --memory-swap="${{memory}}m"); fi
{gpus}
exec docker run {words} "${{limits[@]}}" "${{gpus[@]}}" {rest} "$@"
"""

_NO_IDS = """if [ -z "${{SLURM_STEP_GPUS:-}}" ]; then
    echo "profrun: Slurm does not say which GPUs this step has (SLURM_STEP_GPUS is not set)," \\
        "and a container would get those of other jobs; set cluster.exclusive: true for whole nodes" >&2
    exit 69
fi"""

_NVIDIA = """gpus=(--gpus="\\"device=$SLURM_STEP_GPUS\\",\\"capabilities=compute,utility\\"")"""

_AMD = """
minors=($(cat $(ls -dv {nodes}/*/properties) | awk '$1 == "drm_render_minor" && $2 > 0 {{print $2}}'))
gpus=(--env=NVIDIA_VISIBLE_DEVICES=void --device=/dev/kfd --group-add="$(stat -c %g /dev/kfd)")
for gpu in {which}; do
    if [ -z "${{minors[gpu]:-}}" ]; then echo "profrun: no render node of GPU $gpu is here" >&2; exit 69; fi
    node=/dev/dri/renderD${{minors[gpu]}}
    gpus+=(--device="$node" --group-add="$(stat -c %g "$node")")
done"""


def docker_words(
    job: Job,
    settings: ClusterSettings,
    image: str,
    binds: list[str],
    cwd: Path,
    vendor: str,
    *,
    nodes: Path = KFD_NODES,
) -> tuple[str, ...]:
    """The words between srun and the wrapper, quoted for the shell.

    Args:
        binds: values of ``--mount``.
        vendor: nvidia, amd, none or auto.
        nodes: where the kernel lists AMD's GPUs.

    Raises:
        UsageError: GPUs are asked for in a way in which Slurm cannot say which.
    """
    # Each rank is a container of its own: ranks reach each other, and the network, through the host's.
    alone = job.resources.nodes * job.resources.ranks_per_node == 1 and not job.network
    words = [
        *("--rm", "--init", f"--network={'none' if alone else 'host'}"),
        *CONFINED,
        *([] if job.resources.writable_root else ["--read-only"]),
        *(f"--tmpfs={folder}:{options}" for folder, options in tmpfs(job.resources).items()),
        *([f"--shm-size={job.resources.shm}"] if job.resources.shm else []),
        *("--ulimit=stack=67108864", "--env=HOME=/tmp"),
        *(f"--env={name}" for name in (*PASSED, *job.secrets)),
    ]
    # Only the task knows these: they are expanded there.
    caller = '--user="$(id -u):$(id -g)" --env=USER="$(id -un)" --env=LOGNAME="$(id -un)"'
    rest = [*(f"--mount={bind}" for bind in binds), f"--workdir={cwd}", image]
    script = _SCRIPT.format(
        gpus=_gpus(job, settings, vendor, nodes),
        words=f"{shlex.join(words)} {caller}",
        rest=shlex.join(rest),
    )
    return ("bash", "-c", shlex.quote(script.strip()), "docker-step")


def _gpus(job: Job, settings: ClusterSettings, vendor: str, nodes: Path) -> str:
    """Shell lines that put the GPU options into ``gpus``."""
    whole = bool(settings.exclusive)
    asked = gpus_per_node(job, settings) > 0
    if vendor not in ("nvidia", "amd") or not (asked or (whole and job.resources.gpus == "auto")):
        return "gpus=(--env=NVIDIA_VISIBLE_DEVICES=void)"  # an image may ask for all of them by itself
    if settings.gpu_directive == "none" and not whole:
        raise UsageError(
            "docker on a node must be told which GPUs the job has, and Slurm is not asked for any",
            why="cluster.gpu_directive is none, so Slurm gives no ids, and other jobs may use the same GPUs",
            fix="set cluster.exclusive: true for whole nodes, or another gpu_directive",
        )
    if vendor == "nvidia":
        known = _NVIDIA
        everything = "gpus=(--gpus=all)"
    else:
        known = _AMD.format(nodes=shlex.quote(str(nodes)), which="${SLURM_STEP_GPUS//,/ }").strip()
        everything = _AMD.format(nodes=shlex.quote(str(nodes)), which='"${!minors[@]}"').strip()
    if not whole:
        return _NO_IDS.format() + "\n" + known
    return f'if [ -n "${{SLURM_STEP_GPUS:-}}" ]; then\n{known}\nelse\n{everything}\nfi'
