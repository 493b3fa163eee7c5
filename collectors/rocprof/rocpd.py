"""rocpd databases (rocprofv3 of ROCm 7, schema 3.x): several databases and several processes are one run.

A database holds, for each process, a set of tables whose names end in the process's guid, and views of the
plain names over them. The tables are read, not the views on top: those join inwards and lose a dispatch whose
symbol or thread row is missing. Every column beyond times is optional, so 3.0.0 to 3.0.5 read alike; another
major version is refused.

Never read: environment (but for the variables named in ``RANK_KEYS`` and ``BLOCKING_KEYS``), arguments of the
command, host name and machine id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profrun.collectors.beside import rank_of
from profrun.collectors.reading import Progress, Source
from profrun.collectors.rocprof import rocpd_facts as facts
from profrun.collectors.rocprof.build import build
from profrun.collectors.rocprof.folder import expand, knows
from profrun.collectors.rocprof.sqlite import Database
from profrun.collectors.rocprof.staging import Staging
from profrun.collectors.values import whole
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

SCHEMA_MAJOR = 3
RANK_KEYS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
BLOCKING_KEYS = ("HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL", "CUDA_LAUNCH_BLOCKING")


class RocpdReader:
    """Reads rocpd databases."""

    name = "rocpd"

    def accepts(self, source: Source) -> bool:
        """Is it a rocpd database of any version (and not the older RPD, which shares the prefix)?"""
        if source.path.is_dir():
            return knows(self, source)
        names = source.sqlite_tables
        return "rocpd_api" not in names and any(
            name.startswith(("rocpd_kernel_dispatch", "rocpd_info_process", "rocpd_region")) for name in names
        )

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """Fill the writer from all databases of a run."""
        sources = expand(self, sources)
        staging = Staging(writer)
        seen: dict[str, str] = {}
        versions: set[str] = set()
        blocking: list[bool] = []
        for number, source in enumerate(sources):
            with Database(source.path) as database:
                versions.add(_version(database))
                for part in parts(database):
                    if part.guid in seen:
                        writer.issue(
                            "same_process_twice", 1, "a process that was read already is left out", part.guid
                        )
                        continue
                    seen[part.guid] = source.path.name
                    blocking += _read_part(staging, database, part)
            progress(number + 1, len(sources))
        writer.meta["extra"]["schema_version"] = ", ".join(sorted(versions))
        writer.meta["launch_blocking"] = blocking[0] if blocking and len(set(blocking)) == 1 else None
        build(staging, self.name)


def _version(database: Database) -> str:
    tables = sorted(name for name in database.relations if name.startswith("rocpd_metadata"))
    text = ""
    for table in tables:
        for tag, value in database.rows(f'SELECT tag, value FROM "{table}"'):
            if tag == "schema_version":
                text = str(value)
    found = re.match(r"\d+", text)
    if not found:
        raise InputError(
            f"{database.path.name} does not say which rocpd schema it has",
            why="rocpd_metadata has no schema_version",
            fix="copy it again after the profiler has ended",
        )
    if int(found.group()) != SCHEMA_MAJOR:
        raise InputError(
            f"{database.path.name} has rocpd schema {text}, this profrun reads {SCHEMA_MAJOR}.x",
            fix="convert it to csv with the `rocpd convert` of the ROCm that wrote it, and normalize that",
        )
    return text


def parts(database: Database) -> list[facts.Part]:
    """The processes' table sets: by suffix, or by guid column when the tables have plain names."""
    suffixes = sorted(
        found.group(1)
        for name in database.relations
        if (found := re.fullmatch(r"rocpd_info_process_(\w+)", name))
    )
    if suffixes:
        return [facts.Part(database, guid=text.replace("_", "-"), suffix=f"_{text}") for text in suffixes]
    if "rocpd_info_process" not in database.relations:
        raise InputError(
            f"{database.path.name} is a rocpd database without processes",
            why="it was cut off or is being written",
            fix="copy it again after the profiler has ended",
        )
    guids = database.rows("SELECT DISTINCT guid FROM rocpd_info_process ORDER BY guid")
    return [facts.Part(database, guid=str(guid), suffix="") for (guid,) in guids]


def _read_part(staging: Staging, database: Database, part: facts.Part) -> list[bool]:
    """Stage one process's tables; returns whether launch blocking was set, where that is known."""
    table = part.relation("rocpd_info_process")
    known = part.columns("rocpd_info_process")
    rows = database.rows(
        f"SELECT id, {part.column('rocpd_info_process', 'pid')}, {part.column('rocpd_info_process', 'nid')}, "
        f"{part.column('rocpd_info_process', 'command')}, "
        f"{'CAST(environment AS TEXT)' if 'environment' in known else 'NULL'} FROM {table} ORDER BY id"
    )
    processes: dict[int, int] = {}
    blocking: list[bool] = []
    for key, pid, node, command, environment in rows:
        rank, blocks = _from_environment(environment)
        if rank is None:
            rank = rank_of(database.path)
        processes[int(key)] = staging.process(
            int(pid if pid is not None else key), rank=rank, name=program(command), node=node
        )
        if blocks is not None:
            blocking.append(blocks)
    if not processes:
        processes[0] = staging.process(0)
    _agents(staging, database, part, list(processes.values()))
    facts.read(staging, part, processes)
    return blocking


def _from_environment(text: object) -> tuple[int | None, bool | None]:
    """Rank and launch blocking, the only things ever looked up in a recorded environment."""
    try:
        variables = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return None, None
    if not isinstance(variables, dict) or not variables:
        return None, None
    rank = next((str(variables[key]) for key in RANK_KEYS if key in variables), "")
    blocks = any(str(variables.get(key, "0")) not in ("", "0") for key in BLOCKING_KEYS)
    return (int(rank) if rank.isascii() and rank.isdigit() and len(rank) < 9 else None), blocks


def program(command: object) -> str | None:
    """File name of the program only: arguments may hold secrets."""
    words = command.split() if isinstance(command, str) else []
    return Path(words[0]).name if words else None


def _agents(staging: Staging, database: Database, part: facts.Part, processes: Sequence[int]) -> None:
    table = "rocpd_info_agent"
    if not part.columns(table):
        return
    wanted = ("id", "type", "type_index", "name", "product_name", "uuid", "extdata")
    select = ", ".join(part.column(table, name) for name in wanted)
    for key, kind, ordinal, arch, product, uuid, extra in database.rows(
        f"SELECT {select} FROM {part.relation(table)} ORDER BY id"
    ):
        if whole(key, 2**62) is None:
            staging.writer.issue("agent_not_read", 1, "a row of rocpd_info_agent has no number as its id")
            continue
        gpu = str(kind).upper() == "GPU"
        try:
            more = json.loads(extra) if isinstance(extra, str) else {}
        except ValueError:
            more = {}
        for proc in processes:
            staging.agent(
                proc,
                key,
                gpu,
                whole(ordinal),
                arch=str(arch) if arch else None,
                name=str(product) if product else None,
                **properties(more, uuid),
            )


def properties(agent: object, uuid: object = None) -> dict[str, Any]:
    """Columns of ``devices`` from an agent record of rocprofiler-sdk (JSON of rocpd and results.json)."""
    if not isinstance(agent, dict):
        return {}
    waves, simds = whole(agent.get("max_waves_per_simd")), whole(agent.get("simd_per_cu"))
    wave = whole(agent.get("wave_front_size")) or None
    resident = waves * simds * wave if waves is not None and simds is not None and wave else None
    banks = agent.get("mem_banks")
    memory = None
    if isinstance(banks, list):
        sizes = (whole(bank.get("size_in_bytes"), 2**50) for bank in banks if isinstance(bank, dict))
        memory = sum(size or 0 for size in sizes) or None
    lds = whole(agent.get("lds_size_in_kb"))
    return {
        "cu": whole(agent.get("cu_count")) or None,
        "wave": wave,
        "threads": resident or None,
        "lds": lds * 1024 if lds else None,
        "memory": memory,
        "uuid": str(uuid) if uuid else None,
    }
