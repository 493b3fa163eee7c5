"""``profrun init [COMMAND]``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from profrun.cli.options import (
    CollectorsOption,
    CommandArgument,
    NameOption,
    RepeatsOption,
    StepsOption,
    VariantOption,
)
from profrun.cli.output import note, say
from profrun.cli.start import drafted, short_overrides
from profrun.errors import UsageError

CONTEXT = {"allow_interspersed_args": False}  # the first word that is no option begins the command

EXAMPLES = (
    ("profrun init train.py --epochs 1", "writes job.yaml, for `profrun submit job.yaml`"),
    ("profrun init -o jobs/two.yaml --variant 'bs=8,16' train.py", "with two variants"),
)


def command(
    argv: CommandArgument = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write; - prints it.")
    ] = Path("job.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    collectors: CollectorsOption = None,
    repeats: RepeatsOption = None,
    steps: StepsOption = None,
    variant: VariantOption = None,
    name: NameOption = None,
) -> None:
    """Write a commented job file: profrun init train.py."""
    from profrun.jobs.draft import commented_text
    from profrun.jobs.load import load_text

    given = argv or ["train.py"]
    words = given if not given[0].endswith(".py") or os.access(given[0], os.X_OK) else ["python", *given]
    shown = out == Path("-")
    up = None if shown else os.path.relpath(Path.cwd(), out.absolute().parent)
    draft = drafted(
        words,
        name=name,
        variant=variant,
        collectors=collectors,
        repeats=repeats,
        steps=steps,
        workdir=None if up == "." else up,
    )
    file = "job.yaml" if shown else str(out)
    text = commented_text(draft, _head(file))
    load_text(text, file, short_overrides(collectors, repeats, steps, name))
    if shown:
        say(text.rstrip("\n"))
        return
    _write(out, text, force=force)
    note(f"wrote {out}; next: profrun submit {out}")


def _head(file: str) -> tuple[str, ...]:
    """The comment at the top of a job file."""
    return (
        f"A job for profrun. To run it: profrun submit {file}",
        f"To see what it would do: profrun submit {file} --dry-run",
        "Relative paths count from the folder of this file.",
    )


def _write(out: Path, text: str, *, force: bool) -> None:
    from profrun.store.files import explained

    with explained(out):
        try:
            with out.open("w" if force else "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UsageError(
                f"{out} exists already", fix="name another file with -o FILE, or replace it with --force"
            ) from None
        except FileNotFoundError:
            raise UsageError(f"there is no folder {out.parent}", fix=f"mkdir -p {out.parent}") from None
