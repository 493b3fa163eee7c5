"""How much of the GPU time of real programs has an address: ``python bench/lines.py OUT [PROGRAM ...]``.

Each of ``bench/programs/lines`` is run eager and compiled, with a mapping beside a trial under
torch.profiler. A row for each shows the share of its GPU time with an address, and why the rest has none.
Needs an NVIDIA GPU, and transformers and lightning for three of the programs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("gpt2", "gan", "lit", "generate", "mlp")
PACKAGES = {"gpt2": "[transformers]", "generate": "[transformers]"}
"""Packages whose lines count as the program's own, because the model is in them."""
SPEC = """\
name: {name}
command: {python} {program} {{flags}}
variants:
  eager: {{flags: ""}}
  compiled: {{flags: "--compile"}}
collectors: [torch]
ranges: {{lines: true}}
schedule: {{wait: 6, warmup: 2, active: 3}}
resources: {{timeout: 15m}}
mapping: {{packages: {packages}}}
"""


def measure(name: str, out: Path) -> list[str]:
    """Run a program; a row of the table for each variant."""
    program = Path(__file__).parent / "programs/lines" / f"{name}.py"
    out.mkdir(parents=True, exist_ok=True)
    spec = out / f"{name}.yaml"
    packages = PACKAGES.get(name, "[]")
    spec.write_text(SPEC.format(name=name, python=sys.executable, program=program, packages=packages))
    profrun = [sys.executable, "-m", "profrun.cli"]
    subprocess.run([*profrun, "submit", str(spec), "--runs", str(out / "runs")], check=False)
    (run,) = sorted((out / "runs").glob(f"{name}-*"))[-1:]
    rows = []
    for trial in sorted((run / "trials").iterdir()):
        variant, _, collector = trial.name.split("-", 1)[1].rpartition("-r")[0].rpartition("-")
        if collector == "none":
            continue
        words = [*profrun, "summary", str(trial), "--by", "line", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            rows.append(f"| {name} | {variant} | {collector} | | {done.stderr.strip().splitlines()[-1]} |")
            continue
        table = json.loads(done.stdout)
        if table["resolved"] is None:
            rows.append(f"| {name} | {variant} | {collector} | | no GPU work |")
            continue
        rest = "; ".join(f"{why} {ns / table['gpu_ns']:.1%}" for why, ns in table["unresolved"].items())
        rows.append(f"| {name} | {variant} | {collector} | {table['resolved']:.1%} | {rest} |")
    return rows


def main(out: Path, names: list[str]) -> None:
    """Print the table."""
    print("| program | variant | trial | GPU time with an address | without |\n|---|---|---|---|---|")
    for name in names:
        for row in measure(name, out):
            print(row, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(PROGRAMS))
