"""Makes the fixtures of this folder from what record.sh brought back: small, and nothing private in them.

    python keep.py RUNS OUT      RUNS: the unpacked runs.tar.xz

nsys exports keep only the tables and strings that a reader of the timeline needs: no environment, no output
of the program, no list of the machine's processes. Traces of torch and pages of ncu are kept as they are,
but for the folder in traceName.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import sqlite3
import struct
import sys
import tempfile
from pathlib import Path

KEPT = (
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",
    "NVTX_PAYLOAD_SCHEMAS",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
    "PROFILER_OVERHEAD",
    "TARGET_INFO_CUDA_DEVICE",
    "TARGET_INFO_GPU",
    "TARGET_INFO_SESSION_START_TIME",
)
STRINGS = ("nameId", "textId", "demangledName", "shortName", "mangledName")
EXIT_KEYS = (
    "state",
    "exit_code",
    "seconds",
    "collector",
    "tool",
    "tool_version",
    "vendor",
    "steps",
    "ranges_emitted",
)


def slim(source: Path, target: Path) -> None:
    """Copy one nsys export without what is not a timeline; xz, as it compresses tenfold."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.sqlite"
        con = sqlite3.connect(small)
        con.execute("ATTACH ? AS big", (str(source),))
        tables = "SELECT name, sql FROM big.sqlite_master WHERE type = 'table'"
        there = dict(con.execute(tables).fetchall())
        used = []
        for name in (name for name in KEPT if name in there):
            con.execute(there[name])
            con.execute(f'INSERT INTO main."{name}" SELECT * FROM big."{name}"')
            columns = [row[1] for row in con.execute(f'PRAGMA table_info("{name}")')]
            used += [f'SELECT "{column}" FROM main."{name}"' for column in columns if column in STRINGS]
        if "NVTX_PAYLOAD_SCHEMAS" in there:
            used += [f"VALUES ({number})" for number in in_stacks(con)]
        con.execute(there["StringIds"])
        union = " UNION ".join(used)
        con.execute(f"INSERT INTO main.StringIds SELECT * FROM big.StringIds WHERE id IN ({union})")
        con.execute(there["META_DATA_EXPORT"])
        con.execute(
            "INSERT INTO main.META_DATA_EXPORT SELECT * FROM big.META_DATA_EXPORT "
            "WHERE name LIKE 'EXPORT_PRODUCT%' OR name LIKE 'EXPORT_SCHEMA%'"
        )
        con.execute(there["META_DATA_CAPTURE"])
        con.execute(
            "INSERT INTO main.META_DATA_CAPTURE SELECT * FROM big.META_DATA_CAPTURE "
            "WHERE value LIKE 'CUDA_LAUNCH_BLOCKING=%'"
        )
        con.execute(there["PROCESSES"])
        con.execute(
            "INSERT INTO main.PROCESSES SELECT * FROM big.PROCESSES WHERE globalPid >> 24 IN "
            "(SELECT globalTid >> 24 FROM main.CUPTI_ACTIVITY_KIND_RUNTIME)"
        )
        con.commit()
        con.execute("DETACH big")
        con.execute("VACUUM")
        con.close()
        target.write_bytes(lzma.compress(small.read_bytes(), preset=9))


def in_stacks(con: sqlite3.Connection) -> set[int]:
    """Ids of the strings in Python stacks: the first two numbers of each frame of nsys 2025.3.1."""
    blobs = con.execute("SELECT binaryData FROM main.NVTX_EVENTS WHERE binaryData IS NOT NULL").fetchall()
    frames = [frame for (blob,) in blobs for frame in struct.iter_unpack("<QQQ", blob[48:])]
    return {number for function, file, _ in frames for number in (function, file)}


def keep(trial: Path, target: Path) -> None:
    """One trial's files: raw/rank<k>/..., and the part of exit.json that does not name the machine."""
    for file in sorted(trial.glob("raw/rank*/*")):
        place = target / file.parent.name
        place.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".sqlite":
            slim(file, place / "report.sqlite.xz")
        elif file.name.endswith(".pt.trace.json.gz"):
            text = re.sub(
                rb'"traceName": "[^"]*"', b'"traceName": "pt.trace.json"', gzip.decompress(file.read_bytes())
            )
            (place / "pt.trace.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
        elif file.name.endswith("key_averages.json"):
            (place / "key_averages.json.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
        elif file.suffix == ".csv":
            (place / "report.csv.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
        elif file.name == "steps.json":
            steps = json.loads(file.read_text(encoding="utf-8"))
            steps["host"] = "h200"
            (place / "steps.json").write_text(json.dumps(steps) + "\n", encoding="utf-8")
    exit_ = json.loads((trial / "exit.json").read_text(encoding="utf-8"))
    small = {key: exit_.get(key) for key in EXIT_KEYS}
    (target / "exit.json").write_text(json.dumps(small, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Keep every finished trial of every run under RUNS as OUT/<job>/<trial>."""
    runs, out = Path(sys.argv[1]), Path(sys.argv[2])
    for run in sorted(path for path in runs.iterdir() if path.is_dir()):
        job = run.name.rsplit("-", 2)[0]
        for trial in sorted(run.glob("trials/*")):
            done = trial / "exit.json"
            if done.is_file() and json.loads(done.read_text(encoding="utf-8"))["state"] == "finished":
                keep(trial, out / job / trial.name.split("-", 1)[1])


if __name__ == "__main__":
    main()
