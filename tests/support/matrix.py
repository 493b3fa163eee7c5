"""docs/support-matrix.md: every real file, normalised and checked, or refused.

    python -m tests.support.matrix --write docs/support-matrix.md

Nothing on the page is written by hand: each row is what ``normalize`` answered for that file, and each trace
has passed ``Trace.check()``. Recordings that belong together are one more row.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.every_file import together

from profrun.collectors.normalize import normalize
from profrun.errors import ProfrunError
from profrun.traces.trace import Trace
from tests.conftest import DATA, ROOT

OWN = ROOT / "tests" / "data"
NO_PROFILES = (".md", ".py", ".jsonl", ".yaml", ".sh")
"""Notes and scripts beside the recordings: not listed."""

COUNTS = ("kernels", "memcpys", "memsets", "api", "ops", "ranges", "steps")
HEAD = (
    "| file | format | tool version | GPU | kernels | copies | memsets | api | ops | ranges | steps "
    "| metrics | samples | noticed |\n|" + "---|" * 14
)
INTRO = """\
# Support matrix

Made by `python -m tests.support.matrix --write docs/support-matrix.md`, and kept true by `tests/support`.
Every row is one call of `normalize` on real files; each trace has passed `Trace.check()`. A file that is
refused shows the one line that `profrun normalize` prints (exit code 65, or 69 when a tool is needed that is
not there). That the counts are right is tested beside each reader against independent counts by `json`, `csv`
or `sqlite3`. Reports of nsys (`.nsys-rep`) are exported by the installed nsys, here 2024.2.3.

* *tool version*: as the file states it; empty when it states none.
* *api*: runtime and driver calls; *ops*: framework operators; *ranges*: NVTX, ROCTX, record_function;
  *metrics*: hardware metrics of kernels (ncu, counters); *samples*: rows of the counters table.
* *noticed*: codes of the trace's `issues` table: what was repaired, clipped, or could not be placed.
"""


@dataclass(frozen=True)
class Entry:
    """One row to be: its label and the files given to one call of ``normalize``."""

    label: str
    paths: tuple[Path, ...]

    @property
    def needs_nsys(self) -> bool:
        """Whether the answer depends on an installed nsys."""
        return any(path.suffix in (".nsys-rep", ".qdrep", ".qdstrm") for path in self.paths)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.paths)


def entries() -> list[Entry]:
    """Every real file: shared ones singly and together, then the project's own recordings."""
    found = []
    for path in sorted(item for item in DATA.rglob("*") if item.is_file()):
        if path.suffix not in NO_PROFILES:
            found.append(Entry(str(path.relative_to(DATA)), (path,)))
    for name, files in together():
        label = f"{name.removeprefix('data/')} ({len(files)} files, one recording)"
        found.append(Entry(label, tuple(files)))
    for pattern in ("*.pt.trace.json.gz", "pt.trace.json.gz", "report.sqlite.xz", "report.csv.gz"):
        for path in sorted(OWN.rglob(pattern)):
            found.append(Entry(str(path.relative_to(ROOT)), (path,)))
    return found


def row(entry: Entry, scratch: Path) -> str:
    """The entry's line in the table: counts of a checked trace, or the refusal."""
    out = scratch / "trace"
    shutil.rmtree(out, ignore_errors=True)
    paths = [_unpacked(path, scratch) for path in entry.paths]
    try:
        made = normalize(paths, out)
    except ProfrunError as error:
        text = _cell(str(error))
        for path in paths:
            text = text.replace(str(path), path.name).replace(str(path.parent) + "/", "")
        return f"| {entry.label} | refused: {text} |" + " |" * 12
    with Trace(out) as trace:
        trace.check()
        names = trace.sql("SELECT DISTINCT name FROM devices WHERE name IS NOT NULL ORDER BY name").rows
        gpus = ", ".join(str(name) for (name,) in names)
        metrics = trace.sql("SELECT count(*) FROM metrics").scalar()
        samples = trace.sql("SELECT count(*) FROM counters").scalar()
    counts = dict(made.counts)
    numbers = " | ".join(str(counts[key]) for key in COUNTS)
    noticed = ", ".join(sorted({str(issue["code"]) for issue in made.issues}))
    version = _cell(made.tool_version or "")
    return (
        f"| {entry.label} | {made.source} | {version} | {_cell(gpus)} | {numbers} | {metrics} | {samples} "
        f"| {noticed} |"
    )


def _unpacked(path: Path, scratch: Path) -> Path:
    """Our own SQLite exports are kept xz-compressed."""
    if path.suffix != ".xz":
        return path
    plain = scratch / path.stem
    plain.write_bytes(lzma.decompress(path.read_bytes()))
    return plain


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def rows(chosen: Sequence[Entry]) -> Iterator[str]:
    """A line an entry."""
    with tempfile.TemporaryDirectory() as folder:
        for entry in chosen:
            yield row(entry, Path(folder))


def page() -> str:
    """The whole page; nsys must be installed, its reports are exported by it."""
    every = entries()
    parts = [INTRO]
    for title, start in (
        ("Recorded on H200 for this project", ("h200/", "tests/")),
        ("NVIDIA", ("nvidia/",)),
        ("AMD", ("amd/",)),
    ):
        own = [entry for entry in every if entry.label.startswith(start)]
        parts.append("\n".join([f"## {title}", "", HEAD, *rows(own)]) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, required=True)
    parser.parse_args().write.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
