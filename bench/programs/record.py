"""Run the programs of this folder under profrun and pack each run.

``record.py OUT [--gpu 0] [--only NAME,...]``
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
STEPS_TO_SKIP = {"compiled": 2, "decoding": 20}
"""Steps before the recorded ones; 8 where nothing is said."""


def job_text(name: str, command: str, gpu: str, repeats: int) -> str:
    """The job file of one program."""
    wait = STEPS_TO_SKIP.get(name, 8)
    return (
        f"name: {name}\ncommand: {command}\nimage: none\n"
        f"collectors: [none, torch, nsys]\nrepeats: {repeats}\n"
        f"schedule: {{wait: {wait}, warmup: 2, active: 5}}\nranges: {{modules: 2}}\n"
        f"env: {{CUDA_VISIBLE_DEVICES: '{gpu}', HF_HUB_OFFLINE: '1'}}\n"
    )


def record(name: str, out: Path, gpu: str, repeats: int) -> int:
    """Run one program and pack its run folder into ``OUT/NAME.tar.xz``."""
    script = HERE / f"{name}.py"
    launcher = "torchrun --standalone --nproc-per-node 2" if name.startswith("ddp") else "python"
    work = Path(os.environ.get("PROFRUN_WORK", "/tmp/profrun-programs")) / name
    work.mkdir(parents=True, exist_ok=True)
    job = work / "job.yaml"
    job.write_text(job_text(name, f"{launcher} {script.resolve()}", gpu, repeats))
    with (work / "end.txt").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "profrun", "submit", str(job), "--runs", str(work / "runs")],
            stdout=log, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    with tarfile.open(out / f"{name}.tar.xz", "w:xz", preset=1) as archive:
        archive.add(work, arcname=name, filter=lambda item: None if item.name.endswith(".nsys-rep") else item)
    return done.returncode


def main() -> None:
    """Record every program, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "record")
    for name in arguments.only.split(",") if arguments.only else names:
        print(name, "exit", record(name, arguments.out, arguments.gpu, arguments.repeats), flush=True)


main()
