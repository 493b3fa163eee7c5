# mypy: ignore-errors
"""Training steps of a two-layer perceptron with two Triton kernels, recorded with Proton or torch.profiler.

Every run does the same work with the same seed: 8 steps, of which steps 3, 4, 5 and 6 are the window.
"""

import argparse
import contextlib
import json
import os
import time
import traceback
from pathlib import Path

import torch
import triton
import triton.language as tl

ROWS, WIDTH, HIDDEN = 512, 1024, 2048
STEPS, FIRST, LAST = 8, 3, 6


def metadata(grid, kernel, args):
    """What the Triton hook reports about one launch."""
    n = args["n"]
    return {"name": f"scaled_relu_{n}", "flops32": 2 * n, "bytes": 4 * n}


@triton.jit(launch_metadata=metadata)
def scaled_relu(x, y, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, tl.where(value > 0, value * scale, 0.0).to(tl.float16), mask=at < n)


@triton.jit
def scaled_relu_back(x, g, out, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    grad = tl.load(g + at, mask=at < n).to(tl.float32)
    tl.store(out + at, tl.where(value > 0, grad * scale, 0.0).to(tl.float16), mask=at < n)


class ScaledRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        scaled_relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), 1.5, BLOCK=1024)
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        grad = grad.contiguous()
        scaled_relu_back[(triton.cdiv(x.numel(), 1024),)](x, grad, out, x.numel(), 1.5, BLOCK=1024)
        return out


class Work:
    def __init__(self, side: bool, scopes: bool):
        torch.manual_seed(0)
        half = {"device": "cuda", "dtype": torch.float16}
        self.first = torch.nn.Linear(WIDTH, HIDDEN, **half)
        self.second = torch.nn.Linear(HIDDEN, WIDTH, **half)
        parameters = [*self.first.parameters(), *self.second.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)
        self.host = torch.randn(ROWS, WIDTH, dtype=torch.float16).pin_memory()
        self.target = torch.randn(ROWS, WIDTH, **half)
        self.side = torch.cuda.Stream() if side else None
        self.scopes = scopes

    def scope(self, name, metrics=None):
        if not self.scopes:
            return contextlib.nullcontext()
        import triton.profiler as proton

        return proton.scope(name, metrics)

    def step(self):
        with self.scope("step"):
            with self.scope("load"):
                x = self.host.to("cuda", non_blocking=True)
            with self.scope("forward", {"examples": ROWS, "flops16": 2.0 * 2 * ROWS * WIDTH * HIDDEN}):
                with self.scope("hidden"):
                    y = ScaledRelu.apply(self.first(x))
                y = self.second(y)
                loss = torch.nn.functional.mse_loss(y.float(), self.target.float())
            with self.scope("backward"):
                loss.backward()
            with self.scope("optimizer"):
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
            if self.side is not None:
                self.side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.side), self.scope("side"):
                    self.target.mul_(0.999)
                torch.cuda.current_stream().wait_stream(self.side)
        return loss


def note(a, **facts):
    with (Path(a.out) / "truth.jsonl").open("a") as file:
        file.write(json.dumps({"run": a.name, **facts}) + "\n")


def libraries():
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in lines if "cupti" in line})


def main():
    p = argparse.ArgumentParser()
    p.add_argument("name")
    p.add_argument("--out", default=".")
    p.add_argument(
        "--data", action="append", default=[], help="tree or trace; twice for two sessions at once"
    )
    p.add_argument("--context", default="shadow")
    p.add_argument("--hook", default="triton")
    p.add_argument("--backend")
    p.add_argument("--mode")
    p.add_argument("--how", default="start", choices=["start", "activate", "whole", "nofinalize", "nosync"])
    p.add_argument("--torch", action="store_true", help="torch.profiler over the same window")
    p.add_argument("--order", default="proton-first", choices=["proton-first", "torch-first", "torch-before"])
    p.add_argument("--no-scopes", action="store_true")
    p.add_argument("--no-side", action="store_true")
    p.add_argument(
        "--graph", choices=["before", "inside"], help="capture a CUDA graph before or in the window"
    )
    p.add_argument("--steps", type=int, default=STEPS)
    p.add_argument(
        "--twice", action="store_true", help="a second window with a second session: steps 3-4, 5-6"
    )
    a = p.parse_args()
    import triton.profiler as proton

    work = Work(not a.no_side and not a.graph, not a.no_scopes)
    last = LAST if a.steps == STEPS else a.steps - 2
    sessions, events, walls, costs = [], [], [], {}

    def start(tag=""):
        began = time.perf_counter()
        for data in a.data:
            hook = None if a.hook == "none" else a.hook
            name = str(Path(a.out) / (a.name + tag + ("_" + data if len(a.data) > 1 else "")))
            sessions.append(
                proton.start(name, context=a.context, data=data, hook=hook, backend=a.backend, mode=a.mode)
            )
        costs["start" + tag] = time.perf_counter() - began

    def finalize(tag=""):
        began = time.perf_counter()
        for session in sessions:
            proton.finalize(session)
        sessions.clear()
        costs["finalize" + tag] = time.perf_counter() - began

    profiler = None

    def torch_start():
        nonlocal profiler
        from torch.profiler import ProfilerActivity, profile

        profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        profiler.start()

    def torch_stop():
        profiler.stop()
        profiler.export_chrome_trace(str(Path(a.out) / (a.name + ".pt.trace.json.gz")))
        rows = [
            {"key": e.key, "count": e.count, "self_device_us": float(e.self_device_time_total)}
            for e in profiler.key_averages()
            if e.self_device_time_total
        ]
        note(a, key_averages=rows)

    if a.how in ("whole", "activate"):
        start()
    if a.how == "activate":
        for session in sessions:
            proton.deactivate(session)
    if a.torch and a.order == "torch-before":
        torch_start()
        work.step()
        torch.cuda.synchronize()
        torch_stop()
    graph = None
    if a.graph:
        x = work.host.to("cuda")

        def forward():
            with work.scope("captured"):
                return work.second(ScaledRelu.apply(work.first(x)))

        def capture():
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.no_grad(), torch.cuda.stream(stream):
                forward()
            torch.cuda.current_stream().wait_stream(stream)
            g = torch.cuda.CUDAGraph()
            with torch.no_grad(), torch.cuda.graph(g):
                forward()
            return g

        if a.graph == "before":
            graph = capture()
    total = time.perf_counter()
    for index in range(a.steps):
        if index == FIRST:
            if a.how != "nosync":
                torch.cuda.synchronize()
            if a.torch and a.order == "torch-first":
                torch_start()
            if a.how in ("start", "nofinalize", "nosync"):
                start()
            elif a.how == "activate":
                for session in sessions:
                    proton.activate(session)
            if a.torch and a.order == "proton-first":
                torch_start()
            if a.graph == "inside":
                graph = capture()
        if a.twice and index == FIRST + 2:
            torch.cuda.synchronize()
            finalize()
            start("_second")
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        moment = time.perf_counter()
        begin.record()
        if graph is not None:
            with work.scope("replay"):
                graph.replay()
        else:
            work.step()
        end.record()
        if a.steps == STEPS and a.how != "nosync":
            torch.cuda.synchronize()
        walls.append((time.perf_counter() - moment) * 1e3)
        events.append((begin, end))
        if index == last:
            if a.how != "nosync":
                torch.cuda.synchronize()
            if a.torch and a.order == "proton-first":
                torch_stop()
            if a.how == "activate":
                for session in sessions:
                    proton.deactivate(session)
            elif a.how in ("start", "nosync"):
                finalize("_second" if a.twice else "")
            if a.torch and a.order == "torch-first":
                torch_stop()
    torch.cuda.synchronize()
    total = time.perf_counter() - total
    if a.how in ("whole", "activate"):
        finalize()
    note(
        a,
        event_ms=[round(b.elapsed_time(e), 6) for b, e in events] if a.steps == STEPS else None,
        wall_ms=[round(w, 4) for w in walls] if a.steps == STEPS else None,
        loop_s=total,
        steps=a.steps,
        cost_s=costs,
        cupti=libraries(),
        torch=torch.__version__,
        triton=triton.__version__,
        gpu=torch.cuda.get_device_name(),
        unix_ns=time.time_ns(),
    )
    if a.how == "nofinalize":
        os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        raise SystemExit(3) from None
