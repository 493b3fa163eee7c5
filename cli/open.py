"""``profrun open TRACE``."""

from __future__ import annotations

from pathlib import Path

from profrun.cli.options import JsonOption, RunsOption, TraceArgument, runs_root
from profrun.cli.output import emit, say
from profrun.contract.units import bytes_text
from profrun.runner.references import opened

EXAMPLES = (
    ("profrun open", "the report of the newest run, in the browser"),
    ("profrun open last/1", "the timeline of its trial 1, in Perfetto"),
    ("profrun open trace.json.gz --no-browser", "print the link only"),
)
HOW = "open https://ui.perfetto.dev and drop the file there: the browser reads it, nothing is uploaded"


def command(trace: TraceArgument, runs: RunsOption = None, json_: JsonOption = False) -> None:
    """Write a trace for Perfetto and say how to open it."""
    path = viewable(trace, runs_root(runs))
    if json_:
        emit({"path": str(path), "bytes": path.stat().st_size, "how": HOW})
        return
    say(f"{path} ({bytes_text(path.stat().st_size)})")
    say(HOW)


def viewable(reference: str, root: Path) -> Path:
    """A Perfetto file of the trace, beside it; made again only when the trace is newer.

    Raises:
        UnavailableError: the folder cannot be written; `profrun export --out FILE` writes elsewhere.
    """
    from profrun.traces.export import export

    source = Path(reference)
    with opened(reference, root) as found:
        # A profiler's own file was read into a temporary trace: the Perfetto file is put beside that file.
        folder = source if source.is_file() else found.path
        target = folder.absolute().with_name(folder.name + ".pftrace")
        newest = (source if source.is_file() else found.path / "meta.json").stat().st_mtime_ns
        if not target.exists() or target.stat().st_mtime_ns < newest:
            target.unlink(missing_ok=True)
            export(found, target, "perfetto")
    return target
