"""The script of trials that share an allocation: one step after another on the same nodes. Pure.

With ``#SBATCH`` lines it is queued; inside an allocation that is there already it is run as it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from profrun.backends.cluster import gpus_per_node, vendor_of
from profrun.backends.profilers import margin_s
from profrun.backends.slurm.allocation import EARLY_S, Inside, need_s
from profrun.backends.slurm.runtimes import runtime
from profrun.backends.slurm.script import (
    ASIDE,
    WATCHED,
    gpu_options,
    limits,
    places,
    request,
    step,
    tasks_per_node,
)
from profrun.plans.model import Plan, Trial

_BODY = r"""
run={run}
turns=$run/slurm/{name}.turns  # trials, in the order in which they run
said=$run/slurm/{name}.said    # what became of each, which profrun reads
{aside}{watched}
say() {{ echo "$*" >>"$said"; }}

# Seconds until the allocation ends; nothing where it has no end, or Slurm does not say.
seconds_left() {{
    squeue -h -j "$SLURM_JOB_ID" -o %L 2>/dev/null | awk '/^[0-9]/ {{
        split("1 60 3600 86400", unit, " ")
        for (n = split($1, part, /[-:]/); n; n--) left += part[n] * unit[++i]
        print left
    }}'
}}
{places}
overlap="" # or --overlap, see watched
restarted=${{SLURM_RESTART_COUNT:-0}}
if [ "$restarted" -gt 0 ]; then say restart; fi
while read -r id <&3; do
    trial=$run/trials/$id
    if [ "$restarted" -gt 0 ] && grep -qsx "begin $id" "$said"; then
        if [ -e "$trial/exit.json" ] && ! grep -q '"silent": *\[$' "$trial/exit.json" &&
            ! {{ grep -q '"state": *"timeout"' "$trial/exit.json" &&
            grep -q '"stopped_by": *"SIG' "$trial/exit.json"; }}; then continue; fi
        aside
    fi
    say "begin $id"
    if [ -e "$trial/cancel" ] || [ -e "$run/cancel" ]; then
        say "skip $id cancelled"
        continue
    fi
    left=$(seconds_left)
    if [ -n "$left" ] && [ "$left" -lt {least} ]; then
        say "skip $id time"
        continue
    fi
    watched {srun} \
        >>"$run/slurm/{name}.$id.log" 2>&1 </dev/null 3<&-
    say "end $id $?"
done 3<"$turns"
{after}"""


def render_allocation(
    plan: Plan, trials: Sequence[Trial], run: Path, cwd: Path, *, name: str, inside: Inside | None = None
) -> str:
    """The script that runs these trials, all of one site, one after another.

    Args:
        cwd: the folder that the job's relative paths count from, which the nodes see under the same path.
        name: of the allocation's files in ``slurm/``.
        inside: the allocation that is there already; None: the script is for sbatch.

    Raises:
        UsageError: image, runtime and resources do not fit together, or the time limit is too short.
    """
    settings = plan.job.cluster.of_site(trials[0].site)
    how = runtime(plan.job, settings, run, cwd, vendor_of(settings, plan), once=True)
    margin = margin_s(plan, trials)
    options = []
    if inside is None:
        options = [
            f"--job-name=profrun:{run.name}",
            f"--output={run}/slurm/{name}.log",
            *limits(float(settings.time or need_s(plan, trials)), margin, how),
            *request(plan, trials[0], settings),
        ]
    lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in options)]
    if inside is not None:
        # A step in which profrun runs itself may have bound it to a core.
        lines += [f"# in allocation {inside.job}", 'unset "${!SLURM_CPU_BIND@}"']
    more = ['--job-name="profrun:$id"']
    if inside is not None:
        nodes, tasks = plan.job.resources.nodes, tasks_per_node(plan, trials[0])
        more += ["--overlap", f"--nodes={nodes}", f"--ntasks={nodes * tasks}", f"--ntasks-per-node={tasks}"]
        more += gpu_options(gpus_per_node(plan.job, settings), settings)
    else:
        more.append("$overlap")
    body = _BODY.format(
        run=shlex.quote(str(run)),
        name=name,
        aside=ASIDE,
        watched=WATCHED,
        places=places(plan, trials[0], settings, how),
        least=margin + EARLY_S,
        srun=step(plan, trials, settings, how, more),
        after="".join(f"{line}\n" for line in how.after),
    )
    return "\n".join(lines) + "\n" + body
