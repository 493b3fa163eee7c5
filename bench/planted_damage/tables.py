"""CSV files of rocprofv3: a kernel trace and the trace of the host's calls."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Sequence
from pathlib import Path

from planted_damage.model import GpuRecord, HostRecord, Recording

Row = dict[str, str]


class RocprofV3Csv(Recording):
    """Files whose rows have Correlation_Id, Start_Timestamp and End_Timestamp; one of them has kernels."""

    family = "rocprofv3-csv"

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self.paths = list(paths)
        self.files: list[list[Row]] = []
        self.columns: list[list[str]] = []
        for number, path in enumerate(paths):
            with path.open(newline="") as stream:
                reader = csv.DictReader(stream)
                self.files.append(list(reader))
                self.columns.append(list(reader.fieldnames or ()))
            for index, row in enumerate(self.files[-1]):
                self._record(row, (number, index))
        (process,) = {record.process for record in self.host}  # kernels have no process of their own
        for record in self.gpu:
            record.process = process

    def _record(self, row: Row, ref: tuple[int, int]) -> None:
        start, end = int(row["Start_Timestamp"]), int(row["End_Timestamp"])
        found: Hashable = row["Correlation_Id"]
        if "Kernel_Name" in row:
            lane = (row["Agent_Id"], row["Queue_Id"], row.get("Stream_Id"))
            self.gpu.append(GpuRecord("kernel", row["Kernel_Name"], start, end, None, lane, found, ref))
        else:
            process, thread = row["Process_Id"], row["Thread_Id"]
            self.host.append(HostRecord("api", row["Function"], start, end, process, thread, found, ref))

    def save(self, folder: Path) -> list[Path]:
        """Write all files, every field quoted as rocprofv3 does in ROCm 7."""
        rows = {record.ref: record for record in self.rows}
        out = []
        for number, path in enumerate(self.paths):
            out.append(folder / path.name)
            with out[-1].open("w", newline="") as stream:
                writer = csv.DictWriter(
                    stream, self.columns[number], quoting=csv.QUOTE_ALL, lineterminator="\n"
                )
                writer.writeheader()
                for index, row in enumerate(self.files[number]):
                    record = rows[number, index]
                    new = row | {
                        "Start_Timestamp": str(record.start),
                        "End_Timestamp": str(record.end),
                        "Correlation_Id": str(record.correlation),
                    }
                    writer.writerows([new] * (record.copies if isinstance(record, GpuRecord) else 1))
        return out
