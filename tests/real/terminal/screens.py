"""The screens that are kept as golden text, and the folder in which their commands run.

Everything that they show comes from recordings in ``tests/data``, so it is the same on every machine.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profrun import cli
from profrun.store.runs import Run
from tests.conftest import ROOT, unpack
from tests.runner.scripted import new_run
from tests.support.one_run import as_one_run

WIDTHS = (80, 120, 200)
"""Columns of the terminals."""
RECORDINGS = ("compiled", "compiled_good", "ddp_slow_rank", "empty_cache", "lightning_loader", "trainer")
"""Runs of ``tests/data/h200/programs`` that are there as ``runs/NAME``; each has one variant."""
FOUR = ("compiled", "empty_cache", "lightning_loader", "trainer")
"""Those whose first trials are the variants of the run ``runs/four``, too."""


WITHOUT_STEPS = "pageable"
"""The recording that is ``runs/without_steps``, its steps taken away."""


@dataclass(frozen=True)
class Screen:
    """A command whose screen is kept.

    Attributes:
        name: of the file in ``tests/golden``.
        command: what a person types.
        masks: (pattern, text) of what varies between machines and is replaced by the text.
        writes: a file or a folder that the command makes; it is removed before.
    """

    name: str
    command: str
    masks: Sequence[tuple[str, str]] = ()
    writes: str = ""

    @property
    def line(self) -> str:
        """What the shell is given."""
        return f"rm -rf {self.writes}; {self.command}" if self.writes else self.command

    def masked(self, shown: str) -> str:
        """A screen without what varies."""
        for pattern, text in self.masks:
            shown = re.sub(pattern, text, shown, flags=re.MULTILINE)
        return shown


_SIZE = ((r"[\d.]+ [KM]iB", "SIZE"),)
_MACHINE = (
    (r"\A.*\n", "MACHINE\n"),
    (r"^(  (?:none|torch|nsys|ncu|rocprof|proton) +\S+(?: \S+)?)  .*$", r"\1  STATE"),
    (r"^To mend\n(?: .*\n)+", "To mend\n  REASONS\n"),
)
"""What the machine can do, in the screen of `profrun doctor`."""
SCREENS = (
    Screen("alone", "profrun"),
    Screen("version", "profrun -V", ((r"\d+\.\d+\.\d+\S*", "VERSION"),)),
    Screen("help", "profrun --help"),
    Screen("help-run", "profrun run --help"),
    Screen("help-submit", "profrun submit --help"),
    Screen("help-compare", "profrun compare --help"),
    Screen("status", "profrun status trainer"),
    Screen("status-verbose", "profrun status trainer -v"),
    Screen("status-loader", "profrun status lightning_loader"),
    Screen("status-four-variants", "profrun status four"),
    Screen("status-run-without-steps", "profrun status without_steps"),
    Screen("summary-run-without-steps", "profrun summary without_steps/1"),
    Screen("diagnose-run-without-steps", "profrun diagnose without_steps/1"),
    Screen("runs", "profrun runs"),
    Screen("summary", "profrun summary trainer/1"),
    Screen("summary-two-ranks", "profrun summary ddp_slow_rank/1"),
    Screen("diagnose", "profrun diagnose trainer/1"),
    Screen("diagnose-loader", "profrun diagnose lightning_loader/1"),
    Screen("diagnose-two-ranks", "profrun diagnose ddp_slow_rank/1"),
    Screen("diagnose-nothing", "profrun diagnose compiled_good/1"),
    Screen("compare", "profrun compare compiled/1 vs compiled_good/1"),
    Screen("compare-allowed", "profrun compare compiled/1 vs compiled_good/1 --allow work"),
    Screen("query", "profrun query trainer/1 'select kind, count(*) n from slices group by 1 order by 1'"),
    Screen("export", "profrun export trainer/1 --out t.pftrace", _SIZE, writes="t.pftrace"),
    Screen("report", "profrun report trainer --out t.html", writes="t.html"),
    Screen("baseline", "profrun baseline save kept compiled_good", writes="baselines/kept.json"),
    Screen("doctor", "profrun doctor", _MACHINE),
    Screen("init", "profrun init -o - -n 3 --variant bs=8,16 train.py --epochs 1"),
    Screen("job-check", "profrun job check right.yaml"),
    Screen("job-examples", "profrun job examples"),
    Screen("job-example", "profrun job examples linear -o new", writes="new"),
    Screen("job-schema", "profrun job schema | head -n 20"),
    Screen(
        "normalize",
        "profrun normalize runs/trainer/trials/001*/raw/rank0/*.trace.json.gz --out t",
        ((r"in [\d.]+ s$", "in SECONDS"),),
        writes="t",
    ),
    Screen("prune", "profrun prune --keep 3 --dry-run", _SIZE),
    Screen("completion", "profrun completion bash | head -n 20"),
    Screen("help-demo", "profrun demo --help"),
    Screen("remove", "profrun rm compiled --dry-run", _SIZE),
    Screen("blocking-none", "profrun blocking trainer"),
    Screen("cancel-none", "profrun cancel trainer"),
    Screen("logs-none", "profrun logs trainer 0"),
    Screen("no-command", "profrun statuss"),
    Screen("no-job", "profrun submit nowhere.yaml"),
    Screen("script-for-job", "profrun submit train.py"),
    Screen("no-command-to-run", "profrun run"),
    Screen("wrong-job", "profrun job check wrong.yaml"),
    Screen("no-run", "profrun status nothing"),
    Screen("no-trial", "profrun summary trainer/9"),
    Screen("no-option", "profrun runs --frobnicate"),
)
"""To keep another screen, add a line here and run ``python -m tests.real.terminal.golden``."""

_RIGHT = "name: mlp\ncommand: python train.py\ncollectors: [none]\n"
_WRONG = "name: mlp\ncomand: python train.py\nrepeats: many\n"


def prepare(home: Path) -> Path:
    """Make the folder in which the commands run: recorded runs with traces, and a wrong job file."""
    runs = home / "runs"
    runs.mkdir()
    for name in RECORDINGS:
        with tarfile.open(ROOT / f"tests/data/h200/programs/{name}.tar.xz") as archive:
            unpack(archive, runs)
    _combine(runs)
    with tarfile.open(ROOT / f"tests/data/h200/programs/{WITHOUT_STEPS}.tar.xz") as archive:
        unpack(archive, runs)
    (runs / WITHOUT_STEPS).rename(runs / "without_steps")
    as_one_run(runs / "without_steps")
    for name in (*RECORDINGS, "four", "without_steps"):
        cli.run(["-q", "resume", name, "--yes", "--runs", str(runs), "--json"])
    (home / "right.yaml").write_text(_RIGHT)
    (home / "wrong.yaml").write_text(_WRONG)
    (home / "train.py").write_text("print('one step')\n")
    return home


def _combine(runs: Path) -> None:
    """Make the run "four": one variant for each program of ``FOUR``, without a profiler and with torch's."""
    variants = ", ".join(f"{name}: {{program: {name}.py}}" for name in FOUR)
    spec = f"name: four\ncommand: python {{program}}\nvariants: {{{variants}}}\ncollectors: [none, torch]\n"
    run, plan = new_run(runs, spec, "nvidia")
    run.path.rename(run.path.with_name("four"))
    run, log = Run(runs / "four"), Run(runs / "four").log()
    for trial in plan.trials:
        (source,) = (runs / trial.variant / "trials").glob(f"*-{trial.collector}-r1")
        shutil.copytree(source, run.trials / trial.id)
        log.append("started", trial.id, attempt=1, handle={"backend": "local", "data": {}})
        log.append("finished", trial.id, state="finished", exit_code=0)
    log.append("done", state="finished")
    created = Run(runs / FOUR[0]).events.read_text().splitlines()[0]  # a time and a backend that stay
    events = run.events.read_text().splitlines()
    run.events.write_text("\n".join([created, *events[1:]]) + "\n")
