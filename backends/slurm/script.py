"""The sbatch script of an array of trials: a pure function, golden-tested, what ``--dry-run`` prints.

What decides whether a report survives (measured on Slurm 22.05 and 24.11): a signal to srun loses it, a plain
``scancel`` kills 30 s after TERM, SIGTERM hits profiler and app at once. So the time limit is announced to
the step by SIGURG, which only our wrapper hears, early enough to end the app and let the profiler write.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from profrun.backends.cluster import gpus_per_node, is_launcher, vendor_of
from profrun.backends.profilers import margin_s
from profrun.backends.slurm.allocation import EARLY_S
from profrun.backends.slurm.node_bundle import node_bundle
from profrun.backends.slurm.runtimes import Runtime, runtime
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.plans.model import Plan, Trial

ASIDE = r"""
# Started again (node lost, preempted): what the attempt before left is moved aside whole, and counted.
aside() {
    attempt=$(sed -n 's/.*"attempt": *\([0-9]*\).*/\1/p' "$trial/command.json" | head -n 1)
    mkdir -p "$trial/attempts/${attempt:=1}"
    cp "$trial/command.json" "$trial/attempts/$attempt/"
    find "$trial" -mindepth 1 -maxdepth 1 ! -name attempts ! -name command.json ! -name private.json \
        -exec mv -t "$trial/attempts/$attempt" {} +
    sed "s/\"attempt\": *$attempt/\"attempt\": $((attempt + 1))/" \
        "$trial/attempts/$attempt/command.json" >"$trial/command.json.new" &&
        mv "$trial/command.json.new" "$trial/command.json"
    mkdir -p "$trial/raw"
}
"""
"""A shell function that makes room for the next attempt of ``$trial``."""

WATCHED = r"""
# srun waits for ever for a step whose slurmstepd was killed: it is ended 30 s after the end of its trial.
watch() {
    local ended=0 idle
    exec {idle}<> <(:)
    until [ "$ended" -ge 30 ]; do
        read -rt 5 -u "$idle"
        kill -0 $$ 2>/dev/null || return
        if [ -e "$trial/exit.json" ] &&
            [ -z "$(find "$trial/hook" -name "alive.rank*" -mmin -2 2>/dev/null)" ]; then
            ended=$((ended + 5))
        fi
    done
    local cancelled=1
    for step in $(squeue -h --steps -j "$SLURM_JOB_ID" -o "%i|%j" | sed -n "s/|profrun:$id\$//p"); do
        echo "profrun: step $step goes on although $id has ended, and is cancelled"
        trap "" TERM # srun may end before scancel returns, and then the script ends this watch
        scancel --quiet "$step" && cancelled=0
    done
    return $cancelled
}
watched() { # COMMAND...: run it, and watch it meanwhile
    watch &
    "$@"
    local code=$?
    # Slurm goes on counting what a cancelled step held as used: later steps share it.
    { kill $!; wait $!; } 2>/dev/null && overlap=--overlap
    return "$code"
}
"""
"""Shell functions that end the step of ``$trial``, named ``profrun:$id``, when srun does not see its end. The
watch makes no process that outlives it: in an allocation that was there before, one would hold its lock."""

_BODY = r"""
run={run}
trials=(
{trials}
)
id=${{trials[$SLURM_ARRAY_TASK_ID]}}
trial=$run/trials/$id
{aside}{watched}
if [ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ]; then
    if grep -qs '"state": *"finished"' "$trial/exit.json"; then exit 0; fi
    aside
fi
{places}
watched {srun}
"""

_PLACES = r"""
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))"""


def render_script(
    plan: Plan, trials: Sequence[Trial], run: Path, cwd: Path, *, name: str | None = None
) -> str:
    """The script that runs these trials, all of one site, as an array; index i is the i-th trial.

    Args:
        cwd: the folder that the job's relative paths count from, which the nodes see under the same path.
        name: Slurm's job name, default ``profrun:<run>``.

    Raises:
        UsageError: image, runtime and resources do not fit together.
    """
    settings = plan.job.cluster.of_site(trials[0].site)
    how = runtime(plan.job, settings, run, cwd, vendor_of(settings, plan), once=True)
    lines = ["#!/bin/bash"]
    lines += [f"#SBATCH {option}" for option in options(plan, trials, run, settings, how, name)]
    body = _BODY.format(
        run=shlex.quote(str(run)),
        trials="\n".join(f"    {shlex.quote(trial.id)}" for trial in trials),
        aside=ASIDE,
        watched=WATCHED,
        places=places(plan, trials[0], settings, how),
        srun=step(plan, trials, settings, how, ['--job-name="profrun:$id"']),
    )
    return "\n".join(lines) + "\n" + body


def places(plan: Plan, trial: Trial, settings: ClusterSettings, how: Runtime) -> str:
    """Shell lines before the first step: the master's address, which ``setup`` may change, then ``setup``,
    then the copies of the in-job part on the nodes."""
    setup = "".join(f"\n{line}" for line in _setup(settings, how))
    return _PLACES + setup + _launcher(plan, trial) + node_bundle(plan, how).before


def options(
    plan: Plan,
    trials: Sequence[Trial],
    run: Path,
    settings: ClusterSettings,
    how: Runtime,
    name: str | None = None,
) -> list[str]:
    """The ``#SBATCH`` options of an array, in a fixed order."""
    margin = margin_s(plan, trials)
    limit = float(settings.time or plan.job.resources.timeout + margin + EARLY_S)
    return [
        f"--job-name={name or f'profrun:{run.name}'}",
        f"--array=0-{len(trials) - 1}%{settings.parallel or 1}",
        f"--output={run}/slurm/%A_%a.log",
        *limits(limit, margin, how),
        *request(plan, trials[0], settings),
    ]


def limits(limit: float, margin: int, how: Runtime) -> list[str]:
    """The options about a job's time and its end.

    Args:
        limit: its time, seconds.
        margin: how long before its end it is told, so that reports are written.

    Raises:
        UsageError: nothing of it is left for the work.
    """
    if limit <= margin + EARLY_S:
        raise UsageError(
            f"cluster.time is {limit:.0f} s, and {margin + EARLY_S} s of it are for writing reports",
            fix="raise it, or lower resources.grace",
        )
    return ["--open-mode=append", "--requeue", f"--time={_clock(limit)}", f"--signal={how.signal}@{margin}"]


def request(plan: Plan, trial: Trial, settings: ClusterSettings) -> list[str]:
    """The options that say what is asked for, and where."""
    job = plan.job
    found = [f"--nodes={job.resources.nodes}", f"--ntasks-per-node={tasks_per_node(plan, trial)}"]
    if job.resources.cpus is not None:
        found.append(f"--cpus-per-task={job.resources.cpus}")
    if job.resources.memory is not None:
        found.append(f"--mem={math.ceil(job.resources.memory / (1 << 20))}M")
    found += gpu_options(gpus_per_node(job, settings), settings)
    found += node_options(settings)
    if settings.exclude:
        found.append(f"--exclude={settings.exclude}")
    if settings.exclusive:
        found.append("--exclusive")
    return [*found, *(settings.extra or ())]


def tasks_per_node(plan: Plan, trial: Trial) -> int:
    """A wrapper for each rank, but one for each node where the command starts the ranks itself."""
    return 1 if is_launcher(trial) else plan.job.resources.ranks_per_node


def node_options(settings: ClusterSettings) -> list[str]:
    """The options that say on which nodes, and for which account."""
    stated = {
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "constraint": settings.constraint,
        "reservation": settings.reservation,
        "nodelist": settings.nodelist,
    }
    return [f"--{name}={value}" for name, value in stated.items() if value]


def gpu_options(count: int, settings: ClusterSettings) -> list[str]:
    """The options that ask for GPUs on this cluster."""
    directive = settings.gpu_directive or "gpus-per-node"
    if not count or directive == "none":
        return []
    kind = f"{settings.gpu_type}:" if settings.gpu_type else ""
    return [f"--gres=gpu:{kind}{count}" if directive == "gres" else f"--gpus-per-node={kind}{count}"]


def _clock(seconds: float) -> str:
    """Slurm's D-HH:MM:SS, in whole minutes: its limits have no finer resolution."""
    minutes = math.ceil(seconds / 60)
    days, minutes = divmod(minutes, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{days}-" if days else "") + f"{hours:02d}:{minutes:02d}:00"


def _setup(settings: ClusterSettings, how: Runtime) -> list[str]:
    modules = [shlex.quote(module) for module in settings.modules or ()]
    lines = [f"module load {' '.join(modules)}"] if modules else []
    return [*lines, *(settings.setup or ()), *how.before]


def _launcher(plan: Plan, trial: Trial) -> str:
    """Defaults of torchrun's options (it reads PET_*), so that the job's command needs no host names."""
    if not is_launcher(trial):
        return ""
    ranks = plan.job.resources.ranks_per_node
    return (
        f"\nexport PET_NNODES=$SLURM_NNODES PET_NPROC_PER_NODE={ranks}"
        " PET_MASTER_ADDR=$MASTER_ADDR PET_MASTER_PORT=$MASTER_PORT"
    )


_OWN = frozenset(
    {
        *("--kill-on-bad-exit", "-K", "--wait", "-W", "--job-name", "-J", "--nodes", "-N", "--overlap"),
        *("--ntasks", "-n", "--ntasks-per-node", "--cpus-per-task", "-c", "--gpus-per-node"),
        *(
            "--output",
            "-o",
            "--error",
            "-e",
            "--input",
            "-i",
            "--chdir",
            "-D",
            "--time",
            "-t",
            "--array",
            "-a",
        ),
    }
)
"""Options of srun that profrun sets itself, or that would take its files from it."""


def _srun_extra(settings: ClusterSettings, how: Runtime) -> list[str]:
    """``cluster.srun_extra``, quoted for the shell.

    Raises:
        UsageError: it has an option that profrun sets itself.
    """
    own = _OWN | {word.strip("'").partition("=")[0] for word in how.srun}
    for option in settings.srun_extra or ():
        name = re.split(r"[=\s]", option, maxsplit=1)[0]
        short = name[:2] if not name.startswith("--") else name
        if name in own or short in own:
            raise UsageError(
                f"cluster.srun_extra has {option!r}, and profrun sets {name} of srun itself",
                why="two values would contradict each other",
                fix="leave it out; nodes, ranks, cpus and gpus are keys of `resources`, images of the job",
            )
    return [shlex.quote(option) for option in settings.srun_extra or ()]


def step(
    plan: Plan,
    trials: Sequence[Trial],
    settings: ClusterSettings,
    how: Runtime,
    more: Sequence[str] = (),
) -> str:
    """srun is never signalled and kills no rank because another one failed: each has a report to write.

    It ends the step when a rank has not ended by the time in which its wrapper would have ended it.

    Args:
        more: options of srun, quoted for the shell.
    """
    cpus = plan.job.resources.cpus
    wait = math.ceil(plan.job.resources.timeout + margin_s(plan, trials))
    words = ["srun", "--kill-on-bad-exit=0", f"--wait={wait}", *more]
    # srun does not take it from the job by itself since Slurm 22.05 (man srun, --cpus-per-task).
    words += [f"--cpus-per-task={cpus}"] if cpus is not None else []
    words += [*how.srun, *_srun_extra(settings, how), *how.prefix]
    numbered = is_launcher(trials[0]) and plan.job.resources.nodes > 1
    wrapper = node_bundle(plan, how).wrapper("PET_NODE_RANK=$SLURM_NODEID" if numbered else "")
    return " ".join([*words, wrapper])
