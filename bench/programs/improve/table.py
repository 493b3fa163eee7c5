"""The programs: ``PLANTED``, each with a stall and a remedy, ``CLEAN``, without one, and ``REAL``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Program:
    """One program with its arguments.

    Attributes:
        name: its name in tables and files.
        script: its file in this folder.
        change: of ``contract.changes``, which ``--fixed`` makes by hand; empty where nothing is planted.
        others: further changes that cure the same stall.
        gpu: arguments on a GPU, as a shell has them. Without a GPU a program takes the sizes that it has
            for that.
        on_cpu: whether the remedy saves at least 8 % without a GPU, too.
        ranks: processes under torchrun, each with a GPU where there are any; 1: without torchrun.
        env: variables that the job sets.
        imports: modules that it imports beside torch, for a program that waits for no turn of the GPU: they
            are imported before its turn.
    """

    name: str
    script: str
    change: str = ""
    others: tuple[str, ...] = ()
    gpu: str = ""
    on_cpu: bool = True
    ranks: int = 1
    env: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] | None = None

    @property
    def path(self) -> Path:
        """Its file."""
        return HERE / self.script

    def argv(
        self,
        python: str,
        *,
        on_gpu: bool,
        fixed: bool = False,
        steps: int | None = None,
        in_turn: bool = False,
    ) -> list[str]:
        """The command that runs it.

        Args:
            python: the Python that has torch.
            on_gpu: whether it will see a GPU.
            fixed: with the remedy. Only for programs with a change.
            steps: how many steps it runs; None: as many as it says itself.
            in_turn: others use the GPU, too.
        """
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(self.ranks)]
        return [
            python,
            *(launcher if self.ranks > 1 else []),
            *(self._turn if in_turn and self.ranks == 1 else []),
            str(self.path),
            *(shlex.split(self.gpu) if on_gpu else []),
            *(["--fixed"] if fixed else []),
            *([] if steps is None else ["--steps", str(steps)]),
        ]

    @property
    def _turn(self) -> list[str]:
        """What waits for the turn of a program that does not do so itself."""
        return [] if self.imports is None else [str(HERE / "in_turn.py"), ",".join(("torch", *self.imports))]


ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""As launchers set it. Programs whose remedy is workers have it, too: a thread of torch that waits for work
keeps a core busy for a while, and on a machine with few cores the workers need that core."""


def _planted(
    name: str,
    change: str,
    *others: str,
    on_cpu: bool = True,
    ranks: int = 1,
    env: Mapping[str, str] | None = None,
) -> Program:
    return Program(name, f"{name}.py", change, others, on_cpu=on_cpu, ranks=ranks, env=env or {})


def _clean(kind: str, label: str, gpu: str) -> Program:
    return Program(f"clean_{kind}_{label}", f"clean_{kind}.py", gpu=gpu)


PLANTED = (
    _planted("slow_loader", "loader-workers=4", env=ONE_THREAD),
    _planted("slow_loader_decode", "loader-workers=4", env=ONE_THREAD),
    _planted("pageable_copies", "pinned-memory", on_cpu=False),
    _planted("pageable_loader", "pinned-memory", on_cpu=False),
    _planted("unfused_optimizer", "fused-optimizer", "foreach-optimizer"),
    _planted("forloop_sgd", "fused-optimizer", "foreach-optimizer", on_cpu=False),
    _planted("fp32_gemm", "tf32", "autocast=bfloat16", on_cpu=False),
    _planted("fp32_attention", "autocast=bfloat16", "tf32", on_cpu=False),
    _planted("launch_bound_mlp", "cuda-graphs", "compile=reduce-overhead", on_cpu=False),
    _planted("launch_bound_inference", "compile=reduce-overhead", "cuda-graphs", on_cpu=False),
    _planted("pointwise_chain", "compile=default", "compile=max-autotune"),
    _planted("norm_chain", "compile=default", "compile=max-autotune"),
    _planted("unfused_attention", "compile=default", "compile=max-autotune", on_cpu=False),
    _planted("channels_order", "channels-last", on_cpu=False),
    _planted("empty_cache", "no-empty-cache", on_cpu=False),
    _planted("synchronize", "no-synchronize", on_cpu=False),
    _planted("zero_grad", "set-to-none", on_cpu=False),
    _planted("tiny_buckets", "bucket-size=100", ranks=2),
    _planted("recompilation", "compile-dynamic"),
    _planted("one_thread", "cpu-threads=4", "cpu-threads=2", env=ONE_THREAD),
)
"""Programs with a stall, one each."""

CLEAN = (
    _clean("gemm", "1024", "--width 1024 --batch 16384 --depth 60"),
    _clean("gemm", "2048", "--width 2048 --batch 2048 --depth 80"),
    _clean("gemm", "4096", "--width 4096 --batch 4096 --depth 14"),
    _clean("gemm", "8192", "--width 8192 --batch 8192 --depth 2"),
    _clean("conv", "64", "--width 64 --batch 8 --side 224 --depth 10"),
    _clean("conv", "128", "--width 128 --batch 32 --side 56 --depth 12"),
    _clean("conv", "256", "--width 256 --batch 16 --side 56 --depth 8"),
    _clean("conv", "512", "--width 512 --batch 32 --side 14 --depth 16"),
    _clean("transformer", "768", "--width 768 --batch 32 --length 256 --depth 3"),
    _clean("transformer", "1024", "--width 1024 --batch 8 --length 1024 --depth 2"),
    _clean("transformer", "long", "--width 1024 --batch 2 --length 4096 --depth 2"),
    _clean("transformer", "2048", "--width 2048 --batch 8 --length 512 --depth 1"),
    _clean("copies", "copy", "--megabytes 512 --rounds 12"),
    _clean("copies", "add", "--megabytes 512 --rounds 8 --add 1"),
    _clean("feed", "2048", "--width 2048 --batch 2048 --depth 80"),
    _clean("feed", "4096", "--width 4096 --batch 2048 --depth 28"),
    _clean("cpu", "256", "--width 256 --batch 512 --depth 4"),
    _clean("cpu", "512", "--width 512 --batch 256 --depth 2"),
    _clean("graph", "4096", "--width 4096 --batch 512 --depth 64"),
    _clean("graph", "8192", "--width 8192 --batch 64 --depth 48"),
)
"""Programs without a stall: kind of work, and sizes on a GPU. Without one, all of one kind are the same."""

GPT2 = "transformers.models.gpt2.modeling_gpt2"
REAL = (
    Program(
        "hf_trainer", "../lines/gpt2.py", gpu="--fp32 --steps 80", imports=(GPT2, "transformers.trainer")
    ),
    Program("gan", "../lines/gan.py", gpu="--steps 200", imports=()),
    Program("generate", "../lines/generate.py", gpu="--steps 40", imports=(GPT2,)),
    Program("ddp", "../ddp_good.py", gpu="--steps 150", ranks=2),
)
"""Programs as people write them, each with what it has."""

PROGRAMS: Mapping[str, Program] = {program.name: program for program in (*PLANTED, *CLEAN)}
"""Name -> program."""
