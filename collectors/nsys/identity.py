"""Who and where: processes with their ranks, devices, tracks and clocks of all exports of one trace.

nsys numbers are taken apart as its own scripts do: ``globalTid = (vm << 48) | (pid << 24) | tid``; a process
is known here by ``globalTid >> 24``, a device by its ordinal in that process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from profrun.collectors.beside import rank_of_folder
from profrun.collectors.nsys.source import Export
from profrun.contract import json_text
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

_PID_MASK = 0xFFFFFF


@dataclass
class Origin:
    """What one export says of itself.

    Attributes:
        src: its number in the staging tables.
        product, schema: versions of nsys and of the export's schema, None when not stated.
        epoch_ns: unix time of its t = 0, None when not stated.
        shift_ns: what is added to its times to be on the trace's axis.
        environment: the few variables that profrun looks at (never the whole environment).
        rank: rank of the job it was recorded under, None when nothing says it.
        ranks: pid -> rank, where the hook left steps.json files beside it.
        last_step: pid -> the last step that ended, from the same files.
        gpus: pid -> (ordinal, uuid) of its GPU, from the same files.
        emitted: NVTX ranges that the hook counted, None when it left no file.
        run: (pid, unix time of its begin, duration), ns, of a run without steps, from the same files.
        stopped_ns: when the recording ended, by its own clock; None when not stated.
    """

    src: int
    path: Path
    product: str | None = None
    schema: str | None = None
    epoch_ns: int | None = None
    shift_ns: int = 0
    host: str | None = None
    driver: str | None = None
    environment: dict[str, str] | None = None
    rank: int | None = None
    ranks: dict[int, int] = field(default_factory=dict)
    last_step: dict[int, int] = field(default_factory=dict)
    gpus: dict[int, tuple[int, str]] = field(default_factory=dict)
    emitted: int | None = None
    run: tuple[int, int, int] | None = None
    stopped_ns: int | None = None


_LOOKED_AT = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_LAUNCH_BLOCKING")


def origin(export: Export, src: int) -> Origin:
    """Read versions, clock, host and rank of one export."""
    found = Origin(src, export.path)
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        if table in export.columns:
            meta = dict(export.rows(f'SELECT name, value FROM "{table}"'))
            found.product = _text(meta.get("EXPORT_PRODUCT_VERSION"))
            found.schema = _text(meta.get("EXPORT_SCHEMA_VERSION"))
            _refuse_shifted(export.path, meta)
    if "utcEpochNs" in export.columns.get("TARGET_INFO_SESSION_START_TIME", ()):
        rows = export.rows('SELECT "utcEpochNs" FROM "TARGET_INFO_SESSION_START_TIME"')
        found.epoch_ns = rows[0][0] if rows and isinstance(rows[0][0], int) else None
    if "duration" in export.columns.get("ANALYSIS_DETAILS", ()):
        rows = export.rows('SELECT "duration" FROM "ANALYSIS_DETAILS"')
        found.stopped_ns = rows[0][0] if rows and isinstance(rows[0][0], int) else None
    if "TARGET_INFO_SYSTEM_ENV" in export.columns:
        system = export.rows(
            "SELECT name, value FROM \"TARGET_INFO_SYSTEM_ENV\" WHERE name IN ('Hostname', 'NvDriverVersion')"
        )
        values = dict(system)
        found.host = _text(values.get("Hostname"))
        found.driver = _text(values.get("NvDriverVersion"))
    found.environment = _environment(export)
    _find_ranks(found)
    return found


def _text(value: object) -> str | None:
    """Text of a cell; SQLite keeps what was written, whatever the column's type."""
    return value if isinstance(value, str) and value else None


def _refuse_shifted(path: Path, meta: dict[str, Any]) -> None:
    shift = str(meta.get("EXPORT_PARAM_TIME_SHIFT") or meta.get("EXPORT_CONFIG_TIME_SHIFT") or "0")
    if shift not in ("", "0") or str(meta.get("EXPORT_PARAM_TIME_NORMALIZE", "false")).lower() == "true":
        raise InputError(
            f"{path} was exported with its times changed (--ts-shift or --ts-normalize)",
            why="nothing in it says where its clock began then",
            fix="export it again without these options",
        )


def _environment(export: Export) -> dict[str, str] | None:
    """The variables of ``_LOOKED_AT``; None when the export holds no environment."""
    if "META_DATA_CAPTURE" not in export.columns:
        return None
    where = " OR ".join(f"value LIKE '{name}=%'" for name in _LOOKED_AT)
    held = export.rows("SELECT count(*) FROM \"META_DATA_CAPTURE\" WHERE name LIKE '%:ENVIRONMENT_VARIABLE%'")
    if not held[0][0]:
        return None
    rows = export.rows(
        f"SELECT value FROM \"META_DATA_CAPTURE\" WHERE name LIKE '%:ENVIRONMENT_VARIABLE%' AND ({where})"
    )
    return dict(str(value).split("=", 1) for (value,) in rows)


def _find_ranks(found: Origin) -> None:
    """Rank from the hook's steps.json files beside the report, the environment, or the folder's name."""
    folder = found.path.resolve().parent
    named = rank_of_folder(folder.name)
    around = folder if named is None else folder.parent
    beside = sorted(around.glob("steps.json" if named is None else "rank*/steps.json"))
    for file in beside:
        try:
            steps = json_text.read(file, follow=True)
            pid = int(steps["pid"])
            found.ranks[pid] = int(steps["rank"])
            found.last_step[pid] = max((int(step["step"]) for step in steps["steps"]), default=-1)
            device = steps.get("device")
            if isinstance(device, dict) and device.get("uuid"):
                found.gpus[pid] = int(device["ordinal"]), str(device["uuid"]).removeprefix("GPU-")
            if file.parent == folder:
                found.emitted = int(steps.get("ranges_emitted") or 0)
                if steps.get("how") == "run":
                    found.run = (pid, int(steps["steps"][0]["ts_ns"]), int(steps["steps"][0]["dur_ns"]))
        except (OSError, ValueError, LookupError, TypeError):
            continue  # not the hook's file, or cut short: the rank is found another way
    rank = (found.environment or {}).get("RANK", "")
    if rank.isdigit():
        found.rank = int(rank)
    elif named is not None:
        found.rank = named


def align(origins: list[Origin], writer: TraceWriter) -> None:
    """Put all exports on one axis: 0 is the start of the earliest session. Sets meta.epoch_ns and clock."""
    known = [item.epoch_ns for item in origins if item.epoch_ns is not None]
    if not known:
        writer.meta["clock"] = "session"
        if len(origins) > 1:
            writer.issue(
                "clocks-not-aligned",
                len(origins),
                "the exports do not say when they began: each starts at its own 0, so times of different "
                "processes cannot be compared",
            )
        return
    epoch = min(known)
    writer.meta["epoch_ns"] = epoch
    writer.meta["clock"] = "epoch"
    lost = [item for item in origins if item.epoch_ns is None]
    for item in origins:
        if item.epoch_ns is not None:
            item.shift_ns = item.epoch_ns - epoch
    if lost:
        writer.issue(
            "clocks-not-aligned",
            len(lost),
            "these exports do not say when they began: they were put at the start of the trace",
            str(lost[0].path.name),
        )


def processes(writer: TraceWriter, origins: list[Origin]) -> None:
    """Fill ``processes`` and the map n_proc(src, p, process, pid, number); one row per process that has a
    record. ``number`` stands for (src, p)."""
    con = writer.con
    con.execute(
        "CREATE TABLE n_process_key AS SELECT src, p, max(gpu) AS gpu, min(device) AS device FROM ("
        "SELECT src, gtid >> 24 AS p, 0 AS gpu, NULL AS device FROM n_call_index UNION ALL "
        "SELECT src, gtid >> 24, 0, NULL FROM n_nvtx_index UNION ALL "
        "SELECT src, p, 1, device FROM n_gpu_work) WHERE p IS NOT NULL GROUP BY src, p"
    )
    rows = con.execute(
        "SELECT s.src, s.p, s.gpu, s.device, any_value(q.name) FROM n_process_key s "
        "LEFT JOIN n_process q ON q.src = s.src AND q.gpid >> 24 = s.p "
        "GROUP BY ALL ORDER BY s.src, s.gpu DESC, s.device, s.p"
    ).fetchall()
    by_src = {item.src: item for item in origins}
    rank_of = _ranks(rows, by_src)
    number: dict[tuple[Any, ...], int] = {}
    maps: list[tuple[int, ...]] = []
    table = []
    for src, p, _, _, name in rows:
        pid, host = p & _PID_MASK, by_src[src].host
        rank, guess = rank_of[(src, p)]
        key = (host, p >> 24, pid, rank)
        if key not in number:
            number[key] = len(number)
            table.append((number[key], pid, rank, guess, host, name))
        maps.append((src, p, number[key], pid, len(maps)))
    con.execute("CREATE TABLE n_proc (src INTEGER, p BIGINT, process INTEGER, pid BIGINT, number INTEGER)")
    if maps:
        con.executemany("INSERT INTO n_proc VALUES (?, ?, ?, ?, ?)", maps)
    writer.insert("processes", ("process", "pid", "rank", "rank_guessed", "host", "name"), table)
    writer.issue(
        "rank-guessed",
        sum(guess for _, guess in rank_of.values()),
        "nothing says the rank of these processes: they are numbered in the order of the reports, and of "
        "their device and pid where they share a report",
    )
    idle = [row for row in rows if not row[2]]
    if idle and len(idle) < len(rows):
        example = f"pid {idle[0][1] & _PID_MASK} ({idle[0][4] or 'no name'})"
        writer.issue("process-without-gpu-work", len(idle), "processes that used no GPU", example)


def _ranks(rows: list[tuple[Any, ...]], by_src: dict[int, Origin]) -> dict[tuple[int, int], tuple[int, bool]]:
    """Rank of each (src, p), and whether it is a guess."""
    working: dict[int, list[int]] = {}
    for src, p, gpu, _, _ in rows:
        if gpu:
            working.setdefault(src, []).append(p)
    result: dict[tuple[int, int], tuple[int, bool]] = {}
    several = len(by_src) > 1
    # one process recorded in several windows keeps its rank
    met: dict[tuple[str | None, int], tuple[int, bool]] = {}
    for src, p, gpu, _, _ in rows:
        item = by_src[src]
        base = item.rank if item.rank is not None else (src if several else 0)
        mine = working.get(src, [])
        if (p & _PID_MASK) in item.ranks:
            result[(src, p)] = item.ranks[p & _PID_MASK], False
        elif item.rank is None and (item.host, p) in met:
            result[(src, p)] = met[(item.host, p)]
        elif gpu and len(mine) > 1:
            result[(src, p)] = base + mine.index(p), True
        else:
            result[(src, p)] = base, several and item.rank is None
        met.setdefault((item.host, p), result[(src, p)])
    return result


def devices(writer: TraceWriter, origins: list[Origin]) -> None:
    """Fill ``devices`` and n_dev(process, ordinal, device): every ordinal that a process used.

    A GPU's number on the host is its place by PCI address, as nvidia-smi counts; nsys's own ids have another
    order.
    """
    con = writer.con
    con.execute(
        "CREATE TABLE n_dev AS SELECT row_number() OVER (ORDER BY process, ordinal) - 1 AS device, * FROM ("
        "SELECT m.process, w.device AS ordinal, min(w.src) AS src, min(m.pid) AS pid FROM n_gpu_work w "
        "JOIN n_proc m ON m.src = w.src AND m.p = w.p WHERE w.device IS NOT NULL GROUP BY 1, 2)"
    )
    con.execute(
        "CREATE TABLE n_card AS SELECT *, count(*) OVER all_gpus AS cards, "
        "CASE WHEN count(DISTINCT bus) OVER all_gpus = count(*) OVER all_gpus "
        "THEN rank() OVER (PARTITION BY src ORDER BY bus) - 1 END AS place FROM "
        "(SELECT DISTINCT ON (src, id) * FROM n_gpu WHERE id IS NOT NULL ORDER BY src, id) "
        "WINDOW all_gpus AS (PARTITION BY src)"
    )
    _find_gpus(con, origins)
    con.execute(
        "INSERT INTO devices BY NAME SELECT d.device, d.process, 'nvidia' AS vendor, d.ordinal, "
        "coalesce(nullif(c.name, ''), 'unknown') AS name, 'sm_' || c.major || c.minor AS arch, c.sm_count, "
        "c.warp AS warp_size, c.warps_per_sm * c.warp AS max_threads_per_sm, c.regs_per_sm, c.smem_per_sm, "
        "c.memory AS memory_bytes, CASE WHEN g.sure THEN nullif(c.uuid, '') END AS uuid, "
        "CASE WHEN g.sure THEN c.place END AS host_ordinal FROM n_dev d "
        "LEFT JOIN n_dev_gpu g USING (device) "
        "LEFT JOIN n_card c ON c.src = d.src AND c.id = g.gpu"
    )
    _device_issues(writer)


def _find_gpus(con: duckdb.DuckDBPyConnection, origins: list[Origin]) -> None:
    """Fill n_dev_gpu: which GPU of the machine an ordinal of a process is.

    TARGET_INFO_CUDA_DEVICE (2025.1+) says it. Before, the hook does, which states the uuid of the GPU of its
    process. Without either cuDevice does, which is the ordinal in nsys's own process; of several GPUs that is
    a guess, because CUDA_VISIBLE_DEVICES may differ. It becomes an issue where the GPUs differ.
    """
    con.execute("CREATE TABLE n_hook_gpu (src INTEGER, pid BIGINT, ordinal BIGINT, uuid VARCHAR)")
    told = [(item.src, pid, *gpu) for item in origins for pid, gpu in item.gpus.items()]
    if told:
        con.executemany("INSERT INTO n_hook_gpu VALUES (?, ?, ?, ?)", told)
    con.execute(
        "CREATE TABLE n_dev_gpu AS SELECT device, src, coalesce(stated, guess) AS gpu, "
        "stated IS NOT NULL OR only_one AS sure FROM (SELECT d.device, d.src, "
        "coalesce(any_value(exact.gpu), any_value(by_hook.id)) AS stated, "
        "coalesce(any_value(by_cu.id), any_value(by_id.id)) AS guess, "
        "coalesce(any_value(coalesce(by_cu.cards, by_id.cards)), 0) = 1 AS only_one FROM n_dev d "
        "LEFT JOIN n_cuda_device exact "
        "ON exact.src = d.src AND exact.ordinal = d.ordinal AND exact.pid = d.pid "
        "LEFT JOIN n_hook_gpu hook ON hook.src = d.src AND hook.ordinal = d.ordinal AND hook.pid = d.pid "
        "LEFT JOIN n_card by_hook ON by_hook.src = d.src AND replace(by_hook.uuid, 'GPU-', '') = hook.uuid "
        "LEFT JOIN n_card by_cu ON by_cu.src = d.src AND by_cu.cu_device = d.ordinal "
        "LEFT JOIN n_card by_id ON by_id.src = d.src AND by_id.cu_device IS NULL AND by_id.id = d.ordinal "
        "GROUP BY d.device, d.src)"
    )


def _device_issues(writer: TraceWriter) -> None:
    unknown = writer.con.execute("SELECT count(*) FROM devices WHERE name = 'unknown'").fetchone()
    writer.issue(
        "gpu-unknown",
        int(unknown[0]) if unknown else 0,
        "the export does not say which GPU this was (no TARGET_INFO_GPU row for it)",
    )
    unsure = writer.con.execute(
        "SELECT count(*) FROM n_dev_gpu g WHERE NOT sure AND gpu IS NOT NULL AND "
        "(SELECT count(DISTINCT c.name) FROM n_card c WHERE c.src = g.src) > 1"
    ).fetchone()
    writer.issue(
        "gpu-guessed",
        int(unsure[0]) if unsure else 0,
        "this machine has different GPUs and this version of nsys does not say which one an ordinal of "
        "the process is: CUDA_VISIBLE_DEVICES may make the name wrong",
    )
