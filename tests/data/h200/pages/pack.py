"""Packs whole runs for the pages of docs/: small, and nothing private in them.

    python pack.py RUN NAME FOLDER...
        RUN: a run folder; NAME.tar.xz holds it, under the name that it had
        FOLDER: a folder of the machine that becomes /home/user wherever a document names it

Traces and documents are kept. Left out: what was shipped into the job, the profilers' own files, and in
provenance.json the environment, the packages, the processes and the host's name.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

EMPTIED = {"environment": {}, "packages": [], "processes": [], "host": "h200"}


def dropped(_: str, names: list[str]) -> set[str]:
    """Names in a folder that are not kept."""
    gone = {"bundle", "lock", "hook", "live", "driver.log", "report.html", "wrapper.log"}
    return {name for name in names if name in gone or ".pt.trace" in name or "nsys-rep" in name}


def pack(run: Path, target: Path, folders: list[str]) -> None:
    """Write one run as an archive."""
    with tempfile.TemporaryDirectory() as scratch:
        first = (run / "events.jsonl").read_text(encoding="utf-8").partition("\n")[0]
        copy = Path(scratch) / json.loads(first)["run"]
        shutil.copytree(run, copy, ignore=dropped)
        for path in copy.glob("trials/*/provenance.json"):
            document = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(json.dumps({**document, **EMPTIED}) + "\n", encoding="utf-8")
        for path in copy.rglob("*"):
            if path.suffix in (".json", ".jsonl", ".yaml"):
                text = path.read_text(encoding="utf-8")
                for folder in sorted(folders, key=len, reverse=True):
                    text = text.replace(folder, "/home/user")
                path.write_text(text, encoding="utf-8")
        with tarfile.open(target, "w:xz", preset=9) as archive:
            archive.add(copy, arcname=copy.name, filter=anonymous)


def anonymous(item: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member without the names of the user who made it."""
    item.uid = item.gid = 0
    item.uname = item.gname = ""
    return item


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(__file__).parent / f"{sys.argv[2]}.tar.xz", sys.argv[3:])
