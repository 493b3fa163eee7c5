"""Loads of known kind, one after another: idle, copies and products at 25, 50 and 100 % of the time.

Each rung lasts ``--seconds``. The program reads the power of the GPU by itself every 10 ms meanwhile (NVML's
instant power, field 186), independently of the sampler, and prints one JSON line per rung with its begin and
end (unix time, ns) and the integral of that power.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import threading
import time
from collections.abc import Callable

import torch

FIELD_POWER_INSTANT = 186
CYCLE_S = 0.02
"""Length of a cycle of work and rest: shorter than the time between two values of the driver."""


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t of nvml.h."""

    _fields_ = (
        ("field_id", ctypes.c_uint),
        ("scope_id", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_usec", ctypes.c_longlong),
        ("value_type", ctypes.c_int),
        ("result", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


class PowerReader(threading.Thread):
    """Reads the instant power every 10 ms: ``rows`` of (unix time ns, W)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.rows: list[tuple[int, float]] = []
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.nvml.nvmlInit_v2()
        self.gpu = ctypes.c_void_p()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.gpu))

    def run(self) -> None:
        while True:
            field = FieldValue(FIELD_POWER_INSTANT)
            self.nvml.nvmlDeviceGetFieldValues(self.gpu, 1, ctypes.byref(field))
            self.rows.append((time.time_ns(), (field.value & 0xFFFFFFFF) / 1e3))
            time.sleep(0.01)

    def integral(self, start_ns: int, end_ns: int) -> float:
        """J from start to end, by trapezoids."""
        rows = [row for row in self.rows if start_ns <= row[0] <= end_ns]
        return sum((b[0] - a[0]) / 1e9 * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(rows))


def rung(work: Callable[[], object], share: float, seconds: float) -> int:
    """Work for a share of each cycle; returns how many times the work was done."""
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        while share and time.perf_counter() - begin < CYCLE_S * share:
            work()
            torch.cuda.synchronize()
            count += 1
        time.sleep(max(0.0, CYCLE_S * (1 - share) - 0.0005))
    return count


def main() -> None:
    """Climb the ladders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    source, target = (torch.empty(1 << 26, device="cuda") for _ in range(2))
    works: dict[str, Callable[[], object]] = {
        "copy": lambda: target.copy_(source),
        "product": lambda: matrix @ matrix,
    }
    reader = PowerReader()
    reader.start()
    for name, share in [("idle", 0.0), *((name, share) for name in works for share in (0.25, 0.5, 1.0))]:
        torch.cuda.synchronize()
        start = time.time_ns()
        count = rung(works.get(name, lambda: None), share, args.seconds)
        end = time.time_ns()
        found = {"name": name, "share": share, "start_ns": start, "end_ns": end, "count": count}
        # the driver's value follows the load within 0.2 s, the counter too: compare the inner part
        inner = start + 500_000_000, end - 300_000_000
        print(json.dumps({**found, "inner_ns": inner, "inner_j": reader.integral(*inner)}), flush=True)


if __name__ == "__main__":
    main()
