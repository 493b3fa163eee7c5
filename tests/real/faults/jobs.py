"""The jobs that are disturbed: a program that says when it lives, and its specs."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.real.faults.plan import Shape

MARK = "FAULTS_SCENARIO"
"""Variable that every process of a disturbed run has in its environment: the scenario's folder."""

PROGRAM = '''
"""Makes steps, and writes all the while into a file of its own that it lives.

The file is named <trial>.<execution>.<pid>: all ranks of one execution have the same second word. Its only
line is "<start> <last sign of life> <1 at the end, else 0>", in ns of the monotonic clock.
"""
import os, pathlib, re, signal, socket, sys, threading, time
import profrun

signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of the program's own
found = re.search(r"trials/([^/]+)/hook", os.environ["PROFRUN_HOOK"])
slurm = "-".join(os.environ.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
group = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else os.getsid(0)  # of torchrun
execution = slurm if slurm != "-" else f"{socket.gethostname()}-{group}"
beats = pathlib.Path(__file__).parent / "beats"
name = f"{found[1]}.{execution}.{socket.gethostname()}-{os.getpid()}"
fd = os.open(beats / name, os.O_WRONLY | os.O_CREAT, 0o666)
began = time.monotonic_ns()

def beat(ended=0):
    try:
        os.pwrite(fd, b"%020d %020d %d\\n" % (began, time.monotonic_ns(), ended), 0)
    except OSError:
        pass

def live():
    while True:
        beat()
        time.sleep(0.02)

beat()
threading.Thread(target=live, daemon=True).start()
print("began", flush=True)
for _ in range(int(sys.argv[1])):
    time.sleep(float(sys.argv[2]))
    profrun.step()
beat(ended=1)
os.close(fd)
fd = -1
'''

LAUNCHER = '''
"""Starts two ranks and waits for both; when one fails the other is ended, as torchrun does."""
import os, signal, subprocess, sys, time

signal.signal(signal.SIGINT, signal.SIG_DFL)
ranks = [
    subprocess.Popen(
        [sys.executable, "work.py", *sys.argv[1:]],
        env={**os.environ, "RANK": str(k), "LOCAL_RANK": str(k), "WORLD_SIZE": "2"},
    )
    for k in range(2)
]
while any(rank.poll() is None for rank in ranks):
    if any(rank.poll() for rank in ranks):
        for rank in ranks:
            if rank.poll() is None:
                rank.terminate()
        for rank in ranks:
            rank.wait()
    time.sleep(0.02)
sys.exit(int(any(rank.returncode for rank in ranks)))
'''

TORCH = "import torch\n"
"""Begins the program where a profiler of torch records it."""

STEP_S = 0.08
"""Seconds of one step: twelve of them take about one second."""

GRACE_S = 2
"""What the jobs grant a program that is asked to end, in seconds."""

LINE = re.compile(rb"(\d{20}) (\d{20}) ([01])\n")


@dataclass(frozen=True)
class Beats:
    """One process of the user's program: of which trial and execution, and when it lived, monotonic ns."""

    trial: str
    execution: str
    began: int
    last: int
    ended: bool


def write(folder: Path, shape: Shape, name: str) -> Path:
    """Put the program and the spec into a scenario's folder; returns the spec's path."""
    (folder / "beats").mkdir(exist_ok=True)
    (folder / "beats").chmod(0o777)
    (folder / "work.py").write_text((TORCH if shape.collector == "torch" else "") + PROGRAM)
    (folder / "launch.py").write_text(LAUNCHER)
    spec = folder / "job.yaml"
    spec.write_text(json.dumps(spec_of(shape, name, str(folder))))  # JSON is YAML
    return spec


def spec_of(shape: Shape, name: str, folder: str) -> dict[str, object]:
    """The job spec of a shape. Pure."""
    words = f"{shape.steps} {STEP_S}"
    python = sys.executable if shape.backend != "docker" else "python3"
    command = f"{python} work.py {words}"
    if name == "ranks":
        command = f"{python} launch.py {words}"
    elif name == "torchrun":
        command = f"torchrun --nproc-per-node 2 --master-port 0 work.py {words}"
    resources: dict[str, object] = {"grace": f"{GRACE_S}s", "timeout": "60s"}
    if name == "srun":
        resources["ranks_per_node"] = shape.ranks
    spec: dict[str, object] = {
        "name": "f",
        "command": command,
        "collectors": [shape.collector],
        "repeats": shape.trials,
        "resources": resources,
        "env": {MARK: folder},
    }
    if shape.backend == "docker":
        spec["image"] = IMAGE
        spec["mounts"] = [f"{folder}/beats:{folder}/beats"]
    return spec


IMAGE = "profrun/faults:bookworm"
"""The image of the runs in containers: Debian with Python, nothing else."""


def beats_of(folder: Path) -> list[Beats]:
    """Every process of the program that has written a sign of life, in the order of their starts."""
    found = []
    for path in (folder / "beats").iterdir():
        line = LINE.match(path.read_bytes())
        if line is not None:
            trial, execution = path.name.split(".")[:2]
            began, last, ended = (int(word) for word in line.groups())
            found.append(Beats(trial, execution, began, last, bool(ended)))
    return sorted(found, key=lambda beats: beats.began)
