"""A job of one minute that says which collectors work on a partition's nodes.

It runs the wrapper's own preflight (``run.py --preflight --json``) under the same runtime and with the same
GPU request as a trial would, and brings its answer back through the shared folder.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from tempfile import mkdtemp

from profrun.backends.cluster import gpus_per_node, vendor_of
from profrun.backends.node_probe import PATIENCE_S, NodeAnswer, read_answer
from profrun.backends.slurm.commands import Slurm
from profrun.backends.slurm.runtimes import runtime
from profrun.backends.slurm.script import gpu_options, node_options
from profrun.backends.slurm.states import living_status, parse_squeue
from profrun.errors import UnavailableError
from profrun.jobs.model import Job
from profrun.plans.model import Plan
from profrun.store.files import last_line, make_dir


def probe_script(job: Job, folder: Path, cwd: Path) -> str:
    """The probe's sbatch script. Pure.

    Args:
        job: a job with the cluster block and image to be probed; its command is not run.
        folder: where the bundle lies and the answer goes; the nodes see it.
    """
    settings = job.cluster.of_site(None)
    plan = Plan(job, (), "auto")
    how = runtime(job, settings, folder, cwd, vendor_of(settings, plan))
    options = [
        "--job-name=profrun:probe",
        f"--output={folder}/log",
        "--time=00:01:00",
        "--nodes=1",
        "--ntasks=1",
        *gpu_options(gpus_per_node(job, settings), settings),
        *node_options(settings),
        *(settings.extra or ()),
    ]
    modules = "".join(f"module load {name}\n" for name in settings.modules or ())
    setup = "".join(f"{line}\n" for line in (*(settings.setup or ()), *how.before))
    words = " ".join(["srun", *how.srun, *how.prefix, f"python3 {folder}/bundle/run.py --preflight --json"])
    return (
        "#!/bin/bash\n"
        + "".join(f"#SBATCH {option}\n" for option in options)
        + f"{modules}{setup}hostname >{folder}/node\n{words} >{folder}/answer.new\n"
        f"mv {folder}/answer.new {folder}/answer.json\n"
    )


def probe(job: Job, root: Path, *, patience_s: float = PATIENCE_S, slurm: Slurm | None = None) -> NodeAnswer:
    """Submit the probe and wait for its answer.

    Args:
        root: a folder that the nodes see; a subfolder is made there and removed again.
        patience_s: how long to wait in the queue.

    Raises:
        UnavailableError: Slurm refuses, the queue takes longer, or the node could not run it; says why.
    """
    from profrun.plans.bundle import write_bundle

    engine = slurm or Slurm()
    make_dir(root)
    folder = Path(mkdtemp(prefix=".probe-", dir=root.resolve()))
    try:
        write_bundle(folder / "bundle")
        script = folder / "probe.sh"
        script.write_text(probe_script(job, folder, Path.cwd()))
        started = time.monotonic()
        number = engine.run(["sbatch", "--parsable", str(script)]).strip().split(";")[0]
        _wait(engine, number, folder, started + patience_s)
        preflight = read_answer(folder)
        if preflight is None:
            raise UnavailableError(
                "the probe ended without an answer", why=last_line(folder / "log") or "it said nothing"
            )
        return NodeAnswer(
            last_line(folder / "node") or "a node without a name", preflight, time.monotonic() - started
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(engine: Slurm, number: str, folder: Path, deadline: float) -> None:
    """Until the answer is there or the job has ended without one.

    Raises:
        UnavailableError: the deadline passed; the probe is cancelled.
    """
    pause = 0.5
    while not (folder / "answer.json").exists():
        row = parse_squeue(engine.run(["squeue", "-h", "-t", "all", "-o", "%i|%T|%r", "-j", number])).get(
            number
        )
        living = living_status(row) if row is not None else None
        if living is None:
            time.sleep(2.0)  # its last file may take a moment to be seen here
            return
        if time.monotonic() > deadline or living.state == "failed":
            engine.run(["scancel", "--quiet", number])
            raise UnavailableError(
                "the probe did not get to run",
                why=living.reason or "the queue is long",
                fix="try again later",
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 10.0)
