"""A run with a mapping: a small transformer, recorded clean and once more with ranges round its lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profrun.contract.line_names import Line, line_name
from profrun.store.runs import Run
from tests.reports.runs import PROVENANCE
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

SPEC = "name: lines\ncommand: python train.py\ncollectors: [none, torch]\nranges: {lines: true}\n"
SECRET = "hunter2-and-more"
MODEL = f'''\
"""A transformer."""

import torch
import torch.nn.functional as F
from torch import nn

PASSWORD = "{SECRET}"


class Attention(nn.Module):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores.softmax(dim=-1)
        return self.out(weights @ v)


class MLP(nn.Module):
    def forward(self, x):
        hidden = self.up(x)
        hidden = F.gelu(hidden)
        hidden = hidden * self.gate  # fused with the line above by torch.compile
        return self.down(hidden)


class Model(nn.Module):
    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
'''
TRAIN = """\
import torch

from model import Model

model = torch.compile(Model().cuda())
optimizer = torch.optim.AdamW(model.parameters())


def main(batches):
    for batch in batches:
        tokens = batch.to("cuda", non_blocking=True)
        loss = model(tokens).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main(batches())
"""
GENERATED = Line("/tmp/torchinductor_me/ab/cabcd.py", 120, "call")
FUSED = "triton_poi_fused_gelu_mul_0"


@dataclass
class _Recording:
    """Rows of a trace, one call after the other; ``lines``: with ranges round the lines."""

    model: str
    train: str
    lines: bool
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    host: int = 0
    gpu: int = 0
    sequence: int = 0
    inside: dict[str, list[int]] = field(default_factory=dict)
    backward: list[tuple[str, int, int, int]] = field(default_factory=list)

    def open(
        self, kind: str, name: str, track: str = "main", *, columns: Mapping[str, int] | None = None
    ) -> int:
        """Begin a slice; ``close`` ends it."""
        inside = self.inside.setdefault(track, [])
        place = {"parent": inside[-1] if inside else None, "depth": len(inside)}
        self.rows.append((kind, name, self.host, 0, track, {**(columns or {}), **place}))
        inside.append(len(self.rows) - 1)
        self.host += 1
        return inside[-1]

    def close(self, at: int) -> None:
        """End a slice."""
        kind, name, ts, _, track, columns = self.rows[at]
        assert self.inside[track].pop() == at
        self.host += 1
        self.rows[at] = (kind, name, ts, self.host - ts, track, columns)
        self.host += 1

    def gpu_work(self, name: str, ns: int, track: str = "main", kind: str = "kernel", call: str = "") -> None:
        """A launch and what it launched."""
        api = self.open("api", call or "cudaLaunchKernel", track)
        self.close(api)
        start = max(self.gpu, self.host)
        self.rows.append((kind, name, start, ns, "stream 7", {"launch": api}))
        self.gpu = start + ns

    def line(self, line: Line) -> int | None:
        """Begin a line, where lines are recorded."""
        return self.open("range", line_name(line)) if self.lines else None

    def op(self, line: Line, name: str, kernel: str, ns: int, *, trains: bool = True) -> None:
        """An op in a line, with a backward that takes twice as long."""
        here = self.line(line)
        self.sequence += 1
        op = self.open("op", name, columns={"ops.sequence": self.sequence})
        self.gpu_work(kernel, ns)
        self.close(op)
        if here is not None:
            self.close(here)
        if trains:
            self.backward.append((kernel, 2 * ns, self.sequence, op))

    def run_backward(self) -> None:
        """What autograd's thread does while the main thread waits in ``loss.backward()``."""
        for kernel, ns, sequence, forward in reversed(self.backward):
            node = self.open("op", "autograd::engine::evaluate_function: MmBackward0", "autograd")
            told = {"ops.sequence": sequence, "ops.backward_of": forward}
            op = self.open("op", "MmBackward0", "autograd", columns=told)
            self.gpu_work(f"{kernel}_bwd", ns, "autograd")
            self.close(op)
            self.close(node)
        self.backward.clear()
        node = self.open("op", "autograd::engine::evaluate_function: AccumulateGrad", "autograd")
        self.gpu_work("at::native::vectorized_elementwise_kernel<add>", 400, "autograd")
        self.close(node)


def _layer(found: _Recording, number: int) -> None:
    """One block: attention and MLP."""

    def at(line: int) -> Line:
        return Line(found.model, line, "forward")

    attention = found.open("range", f"nn.Module: layers.{number}.attention (Attention)")
    found.op(at(12), "aten::linear", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", 9_000)
    found.op(at(13), "aten::matmul", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize64x128x64", 6_000)
    found.op(at(14), "aten::softmax", "at::native::softmax_warp_forward<c10::BFloat16>", 2_500)
    found.op(at(15), "aten::linear", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", 5_000)
    found.close(attention)
    mlp = found.open("range", f"nn.Module: layers.{number}.mlp (MLP)")
    found.op(at(20), "aten::linear", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64", 12_000)
    here = found.line(GENERATED)
    found.gpu_work(FUSED, 3_001, call="cuLaunchKernel")
    if here is not None:
        found.close(here)
    found.op(at(23), "aten::linear", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64", 12_000)
    found.close(mlp)


def _step(found: _Recording, number: int, layers: int) -> None:
    found.host = max(found.host, found.gpu) + 10

    def at(line: int) -> Line:
        return Line(found.train, line, "main")

    step = found.open("step", f"ProfilerStep#{number}")
    here = found.line(at(11))
    found.gpu_work("Memcpy HtoD (Pinned -> Device)", 1_500, kind="memcpy", call="cudaMemcpyAsync")
    if here is not None:
        found.close(here)
    here = found.line(at(12))
    root = found.open("range", "nn.Module: root (Model)")
    found.op(Line(found.model, 28, "forward"), "aten::embedding", "at::native::embedding_kernel", 1_200)
    for layer in range(layers):
        block = found.open("range", f"nn.Module: layers.{layer} (Block)")
        _layer(found, layer)
        found.close(block)
    found.op(Line(found.model, 31, "forward"), "aten::linear", "sm90_xmma_gemm_head", 8_000)
    found.close(root)
    if here is not None:
        found.close(here)
    here = found.line(at(13))
    found.run_backward()
    if here is not None:
        found.close(here)
    here = found.line(at(14))
    for _ in range(3):
        found.gpu_work("at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", 4_000)
    if here is not None:
        found.close(here)
    here = found.line(at(15))
    found.gpu_work("nccl_replayed_in_a_graph", 3_000, call="cudaGraphLaunch")
    if here is not None:
        found.close(here)
    found.gpu_work("kernel_of_a_library_without_lines", 900)
    found.close(step)


def rows_of_program(folder: Path, *, lines: bool, steps: int = 3, layers: int = 4) -> list[tuple[Any, ...]]:
    """The slices of a recording of the program.

    Args:
        folder: where its source is.
        lines: with ranges round its lines, as a mapping has them.
    """
    found = _Recording(str(folder / "model.py"), str(folder / "train.py"), lines)
    for number in range(steps):
        _step(found, number, layers)
    return found.rows


def behind(folder: Path) -> list[dict[str, Any]]:
    """What the compiler tells of the fused kernel: it was made of two lines."""
    return [
        {
            "file": GENERATED.file, "line": GENERATED.line, "kernel": f"{FUSED}:4",
            "operation": stack, "frame": 0, "is_view": False, "is_gradient_sum": False,
            "source_file": str(folder / "model.py"), "source_line": line, "source_function": "forward",
        }
        for stack, line in enumerate((21, 22))
    ]  # fmt: skip


def mapped_run(root: Path, *, epoch_ns: int | None = None) -> tuple[Run, Path]:
    """A finished run of a clean trial and a mapping of one variant, and the folder of the program.

    Args:
        epoch_ns: unix ns of the recordings' beginning.
    """
    folder = root / "program"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MODEL)
    (folder / "train.py").write_text(TRAIN)
    run, plan = new_run(root / "runs", SPEC)
    for trial in plan.trials:
        paths = begin(run.trial(trial.id))
        run.log().append("started", trial.id, attempt=1)
        leave(paths, "finished", steps=[300_000] * 3)
        paths.provenance.write_text(json.dumps(PROVENANCE))
        job = {"run": run.name, "trial": trial.id, "variant": trial.variant, "collector": trial.collector}
        meta: dict[str, Any] = {"collector": trial.collector, "job": job, "epoch_ns": epoch_ns}
        if trial.collector == "none":
            rows: list[tuple[Any, ...]] = [("step", "profrun.step#0", 0, 300_000, "main")]
        else:
            rows = rows_of_program(folder, lines=trial.collector == "mapping")
        side = {"generated": behind(folder)} if trial.collector == "mapping" else {}
        make_trace(paths.trace, rows, meta=meta, side=side).close()
    run.log().append("done", None, state="finished")
    return run, folder
