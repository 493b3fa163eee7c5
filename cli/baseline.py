"""``profrun baseline save | list | compare``: numbers of a run in a small file, to compare with later."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from profrun.cli import completers
from profrun.cli.options import ByOption, JsonOption, MarkdownOption, RunsOption, ThresholdOption, runs_root
from profrun.cli.output import columns, emit, say, tell
from profrun.contract.codec import to_json
from profrun.contract.units import time_text
from profrun.errors import UsageError

EXAMPLES = (
    ("profrun baseline save main last/main-none", "keep the numbers of three repeats"),
    ("profrun baseline compare main last/main-none", "is the newest run slower?"),
    ("profrun baseline list", "what is kept in ./baselines"),
)
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Keep a run's numbers to compare with later.",
)
FolderOption = Annotated[
    Path,
    typer.Option(
        "--dir",
        metavar="DIR",
        help="Folder of the baselines; the files are small enough to keep with your code.",
    ),
]
DEFAULT = Path("baselines")


@app.command()
def save(
    name: Annotated[str, typer.Argument(help="Name of the baseline.")],
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="A...",
            help="Traces, RUN/NUMBER, RUN/POINT or runs: repeats of one point.",
            autocompletion=completers.sides,
        ),
    ],
    folder: FolderOption = DEFAULT,
    force: Annotated[bool, typer.Option("--force", help="Replace a baseline of this name.")] = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Keep the numbers of these trials in a file.

    Compare with it by `profrun compare DIR/NAME.json vs B...`.
    """
    from profrun.runner.comparison_sides import BASELINE_FORMAT, expand, read_trials
    from profrun.store.files import make_dir, write_json

    if not name or "/" in name or name.startswith("."):
        raise UsageError(f"{name!r} cannot be the name of a baseline", fix="use letters, digits, '-' and '_'")
    target = folder / f"{name}.json"
    if target.exists() and not force:
        raise UsageError(f"{target} exists already", fix="choose another name or use --force")
    trials = read_trials(expand(traces, runs_root(runs)))
    make_dir(folder)
    now = datetime.datetime.now(datetime.timezone.utc)
    document = {
        "profrun_baseline": BASELINE_FORMAT,
        "name": name,
        "created": now.isoformat(timespec="seconds"),
    }
    write_json(target, {**document, "trials": [trial.to_json() for trial in trials]})
    if json_:
        emit({"path": str(target), "trials": len(trials), "bytes": target.stat().st_size})
    else:
        tell(f"{target}: {len(trials)} trials; compare with `profrun compare {target} vs B...`")


@app.command(name="list")
def list_(folder: FolderOption = DEFAULT, json_: JsonOption = False) -> None:
    """List the baselines with their step times."""
    import statistics

    from profrun.runner.comparison_sides import read_baseline
    from profrun.store.files import read_json

    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        trials = read_baseline(path)
        times = [statistics.median(trial.times) for trial in trials if trial.times]
        rows.append(
            {
                "name": path.stem,
                "path": str(path),
                "created": (read_json(path) or {}).get("created"),
                "trials": len(trials),
                "denominator": to_json(trials[0].conditions.denominator) if trials else None,
                "median_step_ns": round(statistics.median(times)) if times else None,
                "devices": sorted({device for trial in trials for device in trial.conditions.devices}),
            }
        )
    if json_:
        emit({"baselines": rows})
    elif not rows:
        tell(f"no baselines in {folder}; make one with `profrun baseline save NAME RUN/POINT`")
    else:
        shown = [
            (
                row["name"],
                row["created"],
                row["trials"],
                time_text(row["median_step_ns"]),
                row["denominator"]["of"] if row["denominator"] else None,
                ", ".join(row["devices"]),
            )
            for row in rows
        ]
        say(columns(("name", "created", "trials", "time", "of", "devices"), shown, right=(2, 3)))


@app.command()
def compare(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the baseline, or its file.")],
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="B...",
            help="Traces, RUN/NUMBER, RUN/POINT or runs to compare with it.",
            autocompletion=completers.sides,
        ),
    ],
    folder: FolderOption = DEFAULT,
    by: ByOption = "kernel",
    threshold: ThresholdOption = "1%",
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE", help="Rule of a gate, as in `profrun compare`; repeatable.", show_default=False
        ),
    ] = None,
    markdown: MarkdownOption = False,
    runs: RunsOption = None,
    json_: JsonOption = False,
) -> None:
    """Compare with a baseline.

    The same as `profrun compare DIR/NAME.json vs B...`.
    """
    from profrun.cli import compare as compared

    path = Path(name) if Path(name).is_file() else folder / f"{name}.json"
    if not path.is_file():
        known = sorted(file.stem for file in folder.glob("*.json")) if folder.is_dir() else []
        raise UsageError(
            f"no baseline {name!r} in {folder}",
            why=f"there are {', '.join(known)}" if known else "there are none",
            fix="make one with `profrun baseline save NAME A...`",
        )
    compared.command(
        [str(path), "vs", *traces],
        by=by,
        threshold=threshold,
        fail_on=fail_on,
        markdown=markdown,
        runs=runs,
        json_=json_,
    )
