"""Writes programs whose lines can be told by the grids of their kernels: ``source``.

    python -m tests.truth.programs CASE SEED >program.py

Each line that does GPU work works on tensors of a size that no other line has, and says it in a comment,
``# n=1048576``. The sizes lie within a factor of two. A block of a kernel for one element after another does
a power of two of elements. So a grid tells the size, whatever the block is (``size_of``).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence

LEAST = 1 << 20
BLOCK = 1024
CASES = (
    *("eager", "compiled", "graph", "both", "checkpoint"),
    *("function", "triton", "threads", "ddp", "ddp-compiled"),
)
_OPS = ("sin", "cos", "exp", "tanh", "sigmoid", "erf", "log1p", "sinh")


def sizes(count: int) -> list[int]:
    """Different numbers of elements between ``LEAST`` and twice of it, at least 2 % apart."""
    return [LEAST + BLOCK * 24 * (place + 1) for place in range(count)]


def size_of(grid: int, known: Iterable[int]) -> int | None:
    """The size whose kernel has so many blocks, of a power of two of elements each; None for none."""
    found = set()
    for size in known:
        block = 1
        while block <= size:
            if -(-size // block) == grid:
                found.add(size)
            block *= 2
    return found.pop() if len(found) == 1 else None


def source(case: str, seed: int, without: int | None = None) -> str:
    """The program of a case.

    Args:
        without: number of the line that is left out, from 0; None for none.
    """
    rng = random.Random(seed)
    lines = rng.randint(9, 14)
    size = sizes(lines)
    rng.shuffle(size)
    bounds = sorted(rng.sample(range(1, lines), 2))
    blocks = [range(bounds[0]), range(bounds[0], bounds[1]), range(bounds[1], lines)]
    ops = [rng.choice(_OPS) for _ in range(lines)]
    kept = [[at for at in block if at != without] for block in blocks]
    text = ["import os", "import threading", "import torch", "", "torch.manual_seed(0)", 'dev = "cuda"', ""]
    text += _helpers(case)
    for number, block in enumerate(kept):
        text += _block(case, number, block, ops, size)
    return "\n".join([*text, *_main(case, len(blocks))]) + "\n"


def _helpers(case: str) -> list[str]:
    if case == "function":
        return [
            "class Twice(torch.autograd.Function):",
            "    @staticmethod",
            "    def forward(ctx, a):",
            "        return a * 2",
            "",
            "    @staticmethod",
            "    def backward(ctx, grad):",
            "        return grad * 2",
            "",
            "",
        ]
    if case == "triton":
        return [
            "import triton",
            "import triton.language as tl",
            "",
            "",
            "@triton.jit",
            "def twice_kernel(x, out, BLOCK: tl.constexpr):",
            "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
            "    tl.store(out + at, tl.load(x + at) * 2)",
            "",
            "",
        ]
    return []


def _block(
    case: str, number: int, lines: Sequence[int], ops: Sequence[str], size: Sequence[int]
) -> list[str]:
    """A module whose forward has these lines."""
    text = [f"class Block{number}(torch.nn.Module):", "    def __init__(self):", "        super().__init__()"]
    for at in lines:
        text.append(f"        self.a{at} = torch.nn.Parameter(torch.rand({size[at]}, device=dev))")
    text += ["", "    def forward(self, x):"]
    for at in lines:
        text += _line(case, at, ops[at], size[at])
    return [*text, f"        return [{', '.join(f'y{at}' for at in lines)}]", "", ""]


def _line(case: str, at: int, op: str, size: int) -> list[str]:
    if case == "function":
        return [f"        y{at} = Twice.apply(self.a{at})  # n={size}"]
    if case == "triton" and at % 2:
        return [
            f"        y{at} = torch.empty_like(self.a{at})",
            f"        twice_kernel[({size // BLOCK},)](self.a{at}, y{at}, BLOCK={BLOCK})  # n={size}",
        ]
    return [f"        y{at} = torch.{op}(self.a{at})  # n={size}"]


def _main(case: str, blocks: int) -> list[str]:
    text = [
        "class Net(torch.nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        f"        self.blocks = torch.nn.ModuleList([{', '.join(f'Block{at}()' for at in range(blocks))}])",
        "",
        "    def forward(self, x):",
        "        found = []",
        "        for block in self.blocks:",
        *(f"            {line}" for line in _call(case)),
        "        return found",
        "",
        "",
        "net = Net()",
    ]
    if case.startswith("ddp"):
        text += [
            'os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")',
            'torch.distributed.init_process_group("nccl")',
            "net = torch.nn.parallel.DistributedDataParallel(net)",
        ]
    if case in ("compiled", "ddp-compiled"):
        text.append("net = torch.compile(net)")
    if case == "both":
        text.append('net = torch.compile(net, mode="reduce-overhead")')
    text += [
        "opt = torch.optim.SGD(net.parameters(), lr=0.01)",
        "x = torch.zeros(8, device=dev, requires_grad=True)",
        "",
        "",
        "def step():",
        "    found = [y for y in net(x) if y.requires_grad]",
        "    torch.autograd.backward(found, [ones[y.numel()] for y in found])",
        "",
        "",
        "ones = {p.numel(): torch.ones_like(p) for p in net.parameters()}",
    ]
    return [*text, *_loop(case)]


def _call(case: str) -> list[str]:
    if case == "checkpoint":
        return [
            "found += torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
        ]
    if case == "threads":
        return [
            "thread = threading.Thread(target=lambda: found.extend(block(x)))",
            "thread.start()",
            "thread.join()",
        ]
    return ["found += block(x)"]


def _loop(case: str) -> list[str]:
    if case == "graph":
        return [
            "side = torch.cuda.Stream()",
            "side.wait_stream(torch.cuda.current_stream())",
            "with torch.cuda.stream(side):",
            "    for _ in range(3):",
            "        opt.zero_grad(set_to_none=True)",
            "        step()",
            "torch.cuda.current_stream().wait_stream(side)",
            "opt.zero_grad(set_to_none=True)",
            "graph = torch.cuda.CUDAGraph()",
            "with torch.cuda.graph(graph):",
            "    step()",
            "for _ in range(20):",
            "    graph.replay()",
            "    opt.step()",
        ]
    mark = ["    torch.compiler.cudagraph_mark_step_begin()"] if case == "both" else []
    return [
        "for _ in range(20):",
        *mark,
        "    opt.zero_grad(set_to_none=True)",
        "    step()",
        "    opt.step()",
        "torch.cuda.synchronize()",
        *(["torch.distributed.destroy_process_group()"] if case.startswith("ddp") else []),
    ]


if __name__ == "__main__":
    sys.stdout.write(source(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:4])))
