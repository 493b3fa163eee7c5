"""The same matrix product again and again: after a pause, after load, and for long.

Plain PyTorch. Equal kernels on equal shapes should take equal time. Where they do not, the clock of the GPU's
SMs is the first suspect. So this program reads the clock while the products run (by NVML; it changes nothing)
and prints how many cycles a product takes. If the clock were the only cause, this would be the same number
after a pause, after load and for long. The driver's readings do not follow single steps (on an H200 none
changed within 100 ms), so compare the three variants.

The first step is left out: before its product comes the time that the host takes for the first launch.
Without a GPU the sizes shrink, no clock is read, and the output says so.
"""

from __future__ import annotations

import argparse
import bisect
import ctypes
import itertools
import statistics
import threading
import time

import torch
from torch import Tensor, nn

CPU_SIZE, CPU_SECONDS = 128, 0.3
SETTLE = 4
"""Steps before the pause or the load; libraries are loaded in them."""
NVML_CLOCK_SM = 1


class Product(nn.Module):
    """``count`` products of the input with the same square matrix, each of the same numbers."""

    def __init__(self, size: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.weight = nn.Parameter(torch.randn(size, size), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.count - 1):
            x @ self.weight
        return x @ self.weight


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", choices=("pause", "load", "nothing"), default="nothing")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long the pause or the load lasts")
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--per-step", type=int, default=1, help="products per step")
    parser.add_argument("--steps", type=int, default=64)
    args = parser.parse_args()
    if args.steps < 3:
        parser.error("--steps must be at least 3: the first one is left out")
    return args


def fit_to_cpu(args: argparse.Namespace) -> None:
    """Sizes that a CPU can do in seconds; says what was changed."""
    torch.set_num_threads(1)
    args.size, args.seconds = min(args.size, CPU_SIZE), min(args.seconds, CPU_SECONDS)
    print(
        f"no GPU here: size {args.size}, {args.seconds} s before, one thread, "
        "so that a CPU finishes in seconds",
        flush=True,
    )


class ClockReader(threading.Thread):
    """Reads the clock of the SMs of a GPU every 5 ms: ``times`` (time.perf_counter) and ``mhz``."""

    def __init__(self, uuid: str) -> None:
        super().__init__(daemon=True)
        self.times: list[float] = []
        self.mhz: list[int] = []
        self.done = threading.Event()
        self.uuid = uuid

    def run(self) -> None:
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:  # not an NVIDIA GPU: there are no readings
            return
        gpu, clock = ctypes.c_void_p(), ctypes.c_uint()
        nvml.nvmlInit_v2()
        nvml.nvmlDeviceGetHandleByUUID(f"GPU-{self.uuid}".encode(), ctypes.byref(gpu))
        while gpu.value and not self.done.wait(0.005):
            if nvml.nvmlDeviceGetClockInfo(gpu, NVML_CLOCK_SM, ctypes.byref(clock)) == 0:
                self.times.append(time.perf_counter())
                self.mhz.append(clock.value)

    def at(self, moment: float) -> int:
        """MHz by the last reading before a moment, or by the first one."""
        return self.mhz[max(0, bisect.bisect(self.times, moment) - 1)]


def load(x: Tensor, weight: Tensor, seconds: float) -> None:
    """Keep the GPU busy with the same product for some seconds."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(10):
            x @ weight
        if x.is_cuda:
            torch.cuda.synchronize()


def gpu_steps(model: Product, x: Tensor, steps: int) -> tuple[list[float], list[float]]:
    """When each step began on the host's clock, and how many ms it took, both by CUDA events."""
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    begin = time.perf_counter()
    events[0].record()
    for event in events[1:]:
        model(x)
        event.record()
    torch.cuda.synchronize()
    starts = [begin + events[0].elapsed_time(event) / 1e3 for event in events[:-1]]
    return starts, [before.elapsed_time(after) for before, after in itertools.pairwise(events)]


def cpu_steps(model: Product, x: Tensor, steps: int) -> list[float]:
    """How many ms each step took."""
    marks = [time.perf_counter()]
    for _ in range(steps):
        model(x)
        marks.append(time.perf_counter())
    return [1e3 * (after - before) for before, after in itertools.pairwise(marks)]


def spread(times: list[float]) -> str:
    """Median, and the range of the middle 80 %: a profiler that starts or stops makes single steps long."""
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    median, low, high = statistics.median(times), tenths[0], tenths[-1]
    return (
        f"without the first step, median {median:.3f} ms, "
        f"80 % of the steps take {low:.3f} to {high:.3f} ms ({(high - low) / median:.1%} of the median)"
    )


def cycles(times: list[float], starts: list[float], reader: ClockReader, per_step: int) -> str:
    """The median of the clock over the steps, and how many cycles the median product takes at it."""
    if not reader.mhz:
        return "the clock could not be read"
    clocks = [reader.at(start) for start in starts]
    mhz = statistics.median(clocks)
    million = statistics.median(times) * mhz / 1e3 / per_step
    return (
        f"clock {mhz:.0f} MHz ({min(clocks)} to {max(clocks)}), so {million:.2f} million cycles per product"
    )


def main() -> None:
    """Settle, pause or load, then measure."""
    args = arguments()
    gpu = torch.cuda.is_available()
    if not gpu:
        fit_to_cpu(args)
    device, kind = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    torch.manual_seed(0)
    model = Product(args.size, args.per_step).to(device, kind)
    x = torch.randn(args.size, args.size, device=device, dtype=kind)
    clock = "no clock is read"
    with torch.inference_mode():
        for _ in range(SETTLE):
            model(x)
        if args.before == "load":
            load(x, model.weight, args.seconds)
        elif args.before == "pause":
            if gpu:
                torch.cuda.synchronize()
            time.sleep(args.seconds)
        if gpu:
            reader = ClockReader(str(torch.cuda.get_device_properties(0).uuid).removeprefix("GPU-"))
            reader.start()
            starts, times = gpu_steps(model, x, args.steps)
            reader.done.set()
            clock = cycles(times[1:], starts[1:], reader, args.per_step)
        else:
            times = cpu_steps(model, x, args.steps)
    print(
        f"product of {args.size} x {args.size} on {device}, {args.per_step} per step: "
        f"{spread(times[1:])}; {clock}"
    )


if __name__ == "__main__":
    main()
