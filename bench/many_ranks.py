"""Trials of many ranks on a Slurm of two nodes on this machine: real wrappers, a small program.

    python bench/many_ranks.py [--ranks 64] [--collector none]

Needs root, slurmctld, slurmd, munged and ``PROFRUN_SHARED``, whose slurm_up.sh starts the two nodes; they get
as many CPUs as they need tasks. The program waits until all ranks have begun, as the first collective of a
training would, and then makes a few steps. Prints what the driver took, what lies in the run's folder, and,
where strace is there, how often one rank asks for files of the run's folder, by part of it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

NODES = 2
WORK = """
import os, socket, time
import profrun

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
place = ("127.0.0.1", place[1])  # both nodes are this machine
if rank == 0:
    server = socket.create_server(place, backlog=world)
    others = [server.accept()[0] for _ in range(world - 1)]
    for other in others:
        other.sendall(b"go")
else:
    for _ in range(6000):
        try:
            link = socket.create_connection(place)
            break
        except OSError:
            time.sleep(0.1)
    link.recv(2)
"""
PLAIN = """
for _ in range(5):
    time.sleep(0.01)
    profrun.step()
"""
TORCH = """
layer = torch.nn.Linear(32, 32)
for _ in range(5):
    layer(torch.randn(8, 32))
    profrun.step()
"""
JOB = """
name: many
command: "{python} work.py"
collectors: [{collector}]
schedule: {{wait: 1, warmup: 1, active: 2}}
resources: {{nodes: {nodes}, ranks_per_node: {each}, timeout: 20m, grace: 60s}}
"""


def cluster(base: Path, tasks: int) -> dict[str, str]:
    """Start two nodes with room for so many tasks each; the environment that finds them."""
    script = (Path(os.environ["PROFRUN_SHARED"]) / "slurm/slurm_up.sh").read_text()
    script = script.replace("CPUs=4 RealMemory=4000", f"CPUs={tasks} RealMemory={10 * tasks + 4000}")
    script = script.replace("DefMemPerCPU=200", "DefMemPerCPU=1")
    port = str(20000 + os.getpid() % 20000)
    subprocess.run(["bash", "-c", script, "up", str(base), port], check=True, stdout=subprocess.DEVNULL)
    bin_ = Path(sys.executable).parent
    return {**os.environ, "SLURM_CONF": str(base / "slurm.conf"), "PATH": f"{bin_}:{os.environ['PATH']}"}


def submit(folder: Path, environ: dict[str, str]) -> None:
    """Submit the job and print what the driver took."""
    began = time.monotonic()
    driver = subprocess.Popen(
        [sys.executable, "-m", "profrun.cli", "submit", "job.yaml", "--backend", "slurm", "--json"],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    document = json.loads(driver.stdout.read())
    _, _, used = os.wait4(driver.pid, 0)
    took = time.monotonic() - began
    states = Counter(trial["state"] for trial in document["trials"])
    print(f"end to end {took:.1f} s; trials {dict(states)}")
    print(f"driver: {used.ru_utime + used.ru_stime:.1f} CPU s, {used.ru_maxrss // 1024} MB at most")
    log = [json.loads(line) for line in next(folder.glob("runs/*/events.jsonl")).read_text().splitlines()]
    at = {one["event"]: one["ts"] for one in log}
    made = [one["seconds"] for one in log if one["event"] == "normalised"]
    print(f"queued to finished {(at['finished'] - at['queued']) / 1e9:.1f} s; normalising {made} s")


def files(run: Path) -> None:
    """Print what lies in the run's folder."""
    found: Counter[str] = Counter()
    sizes = 0
    for path in run.rglob("*"):
        if path.is_file():
            found[path.relative_to(run).parts[0]] += 1
            sizes += path.stat().st_size
    print(f"files: {sum(found.values())} ({dict(found)}), {sizes / 1e6:.1f} MB")


def asked(run: Path, bundle: Path, folder: Path) -> Counter[str]:
    """Which parts of the run's folder a trial of one rank asks the file system for; calls by part."""
    trial = next(iter((run / "trials").iterdir()))
    target = run / "trials" / f"traced-{bundle.name}"
    (target / "raw").mkdir(parents=True)
    command = json.loads((trial / "command.json").read_text())
    command["ranks"] = 1
    (target / "command.json").write_text(json.dumps(command))
    log = folder / "strace"
    environ = {
        **os.environ,
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29777",
    }
    words = ["strace", "-f", "-qq", "-e", "trace=%file", "-o", str(log), "python3", str(bundle / "run.py")]
    subprocess.run([*words, str(target)], env=environ, check=True, capture_output=True)
    paths = re.findall(r'"(/[^"]*)"', log.read_text(errors="replace"))
    shutil.rmtree(target)
    inside = [Path(path).relative_to(run).parts for path in paths if path.startswith(f"{run}/")]
    return Counter(parts[0] for parts in inside)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--collector", default="none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, base = Path(name) / "desk", Path(name) / "slurm"
        folder.mkdir()
        base.mkdir()
        environ = cluster(base, options.ranks // NODES)
        torch = options.collector == "torch"
        work = f"import torch\n{WORK}{TORCH}" if torch else WORK + PLAIN
        (folder / "work.py").write_text(work)
        python = sys.executable if torch else "python3"
        job = JOB.format(python=python, collector=options.collector, nodes=NODES, each=options.ranks // NODES)
        (folder / "job.yaml").write_text(job)
        try:
            submit(folder, environ)
            (run,) = (folder / "runs").iterdir()
            files(run)
            if shutil.which("strace"):
                copy = Path(shutil.copytree(run / "bundle", folder / "copy"))
                for what, bundle in (("run's folder", run / "bundle"), ("node's disk", copy)):
                    counted = asked(run, bundle, folder)
                    print(f"one rank, in-job part on the {what}: {dict(counted)} calls in the run's folder")
        finally:
            down = Path(os.environ["PROFRUN_SHARED"]) / "slurm/slurm_down.sh"
            subprocess.run(["bash", str(down), str(base)], check=False, capture_output=True)


if __name__ == "__main__":
    main()
