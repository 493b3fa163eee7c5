"""What ``submit``, ``run`` and ``demo`` share: plan a job, show what it would do or start it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.cli.options import runs_root
from profrun.cli.output import emit, note, say, shown_path
from profrun.contract.units import counted
from profrun.errors import UsageError

if TYPE_CHECKING:
    from profrun.jobs.draft import Draft
    from profrun.jobs.load import Spec
    from profrun.jobs.overrides import Override
    from profrun.plans.model import Plan


@dataclass(frozen=True)
class HowToStart:
    """The options that every command has which starts a run.

    Attributes:
        backend: local, docker, slurm or kubernetes.
        set_: ``path=value`` overrides.
        dry_run: print what every trial would do, and start nothing.
        detach: return at once; the run continues in the background.
        runs: folder of the runs; None: the default one.
        verbose: also print every trial and every comparison.
        json_: print one JSON document.
    """

    backend: str
    set_: Sequence[str]
    dry_run: bool
    detach: bool
    runs: Path | None
    verbose: bool
    json_: bool


def short_overrides(
    collectors: str | None = None,
    repeats: int | None = None,
    steps: int | None = None,
    name: str | None = None,
    *,
    lines: bool = False,
) -> list[Override]:
    """The options ``--collectors``, ``--repeats``, ``--steps``, ``--name`` and ``--lines`` as overrides."""
    from profrun.jobs.overrides import Override

    found = []
    if name is not None:
        found.append(Override(f"name={json.dumps(name)}", f"--name {name}"))
    if collectors is not None:
        names = ", ".join(words(collectors))
        found.append(Override(f"collectors=[{names}]", f"--collectors {collectors}"))
    if repeats is not None:
        found.append(Override(f"repeats={repeats}", f"--repeats {repeats}"))
    if steps is not None:
        found.append(Override(f"schedule.active={steps}", f"--steps {steps}"))
    if lines:
        found.append(Override("ranges.lines=true", "--lines"))
    return found


def words(text: str) -> list[str]:
    """The items of a list that is divided by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def drafted(
    argv: Sequence[str],
    *,
    name: str | None,
    variant: Sequence[str] | None,
    collectors: str | None,
    repeats: int | None,
    steps: int | None,
    workdir: str | None = None,
) -> Draft:
    """The job spec of a command that was typed.

    Raises:
        UsageError: the command or a ``--variant`` cannot be used.
    """
    from profrun.jobs.draft import Draft
    from profrun.jobs.sweep import sweep_of

    _refuse_odd_words(argv)
    return Draft.of(
        argv,
        name=name,
        sweeps=[sweep_of(text) for text in variant or ()],
        collectors=words(collectors) if collectors else None,
        repeats=repeats,
        steps=steps,
        workdir=workdir,
    )


def _refuse_odd_words(argv: Sequence[str]) -> None:
    """Refuse words that make no command."""
    if not argv:
        raise UsageError(
            "no command is given", fix="write it at the end: profrun run -n 3 -- python train.py --epochs 1"
        )
    if len(argv) == 1 and " " in argv[0] and not Path(argv[0]).exists():
        raise UsageError(
            f"{argv[0]!r} is one word, so it would be the name of a program",
            fix=f"leave out the quotes: profrun run -- {argv[0]}",
        )
    if any(not _is_utf8(word) for word in argv):
        fix = "rename the file, or pass it from a script"
        raise UsageError("an argument of the command is not UTF-8", fix=fix)
    if re.fullmatch(r"[A-Za-z_]\w*=.*", argv[0], re.DOTALL):
        raise UsageError(
            f"{argv[0]!r} sets a variable, so it is not a program",
            fix=f"write profrun run -- env {shlex.join(argv)}",
        )


def _is_utf8(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def start(
    spec: Spec,
    how: HowToStart,
    *,
    overrides: Sequence[Override] = (),
    only: Sequence[str] = (),
    again: bool = False,
) -> int:
    """Start a job, or show what it would do; returns the exit code.

    Args:
        overrides: of the command's own options; those of ``--set`` are laid over them.
        only: the variants to keep; empty: all.
        again: also say where the job's file is kept.
    """
    from profrun.runner.pipeline import plan, prepare

    planned = plan(spec, [*overrides, *how.set_], only=only, backend=how.backend)
    root = runs_root(how.runs)
    if how.dry_run:
        _show_requests(planned, spec.folder, root, how)
        return 0
    from profrun.cli.carry_out import carry_out, detach_run  # not needed by a dry run, which should be fast

    for warning in planned.job.warnings:
        note(f"{spec.name}: {warning}")
    prepared = prepare(planned, spec, backend=how.backend, root=root)
    for text in prepared.left_out:
        note(f"{spec.name}: {text}")
    note(f"{prepared.run.name}: {counted(len(prepared.plan.trials), 'trial')} in {prepared.run.path}")
    if again:
        kept = prepared.run.resolved if how.set_ else prepared.run.job
        note(f"run it again: profrun submit {shlex.quote(shown_path(kept))}")
    if how.detach:
        return detach_run(prepared.run, json_=how.json_)
    return carry_out(prepared, json_=how.json_, verbose=how.verbose)


def _show_requests(planned: Plan, cwd: Path, root: Path, how: HowToStart) -> None:
    from profrun.contract.codec import to_json
    from profrun.runner.dry_run import dry_run, dry_text

    found = dry_run(planned, how.backend, root, cwd)
    emit(to_json(found)) if how.json_ else say(dry_text(found))
