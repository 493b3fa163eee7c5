"""Text generation by a small decoder with random weights: prefill of a prompt, then one token per step.

Plain PyTorch, greedy, and no end token, so that every request has the same length. The modes differ in what a
new token costs: the whole sequence again (``no_cache``), only itself with keys and values that grow by
``torch.cat`` (``cache``), or with a cache of fixed size, which makes each token the same work. That can be
compiled (``compile``) or captured into one CUDA graph (``graph``).

Without a GPU the sizes shrink, and the output says so; ``graph`` then runs without a graph.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import record_function

MODES = ("no_cache", "cache", "compile", "graph")
CPU_SIZES = {"batch": 1, "prompt": 64, "new": 32, "layers": 1, "width": 64}
VOCABULARY, HEAD = 8192, 64
Cache = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer: (batch, heads, length, 64)."""


class Block(nn.Module):
    """Attention over the cache, and an MLP."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(
        self, x: Tensor, cache: tuple[Tensor, Tensor] | None, position: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """``position``: where the tokens go in a cache of fixed size; None: behind a cache that grows."""
        batch, new, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, new, 3, -1, HEAD).permute(2, 0, 3, 1, 4)
        mask = None
        if cache is not None and position is not None:
            k, v = (kept.index_copy_(2, position, now) for kept, now in zip(cache, (k, v), strict=True))
            mask = torch.arange(k.shape[2], device=x.device) <= position[:, None]
        elif cache is not None:
            k, v = (torch.cat((kept, now), 2) for kept, now in zip(cache, (k, v), strict=True))
        causal = mask is None and new > 1  # a prompt; a single token sees all that is kept
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, new, width))
        return x + self.mlp(self.norm2(x)), (k, v)


class Decoder(nn.Module):
    """Tokens (batch, new) to the next token (batch, 1), with a cache."""

    def __init__(self, layers: int, width: int, length: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        for embedding in (self.token, self.place):
            nn.init.normal_(embedding.weight, std=0.02)  # as in GPT-2; else attention would hardly matter

    def forward(
        self, tokens: Tensor, places: Tensor, cache: Cache | None = None, fixed: bool = False
    ) -> tuple[Tensor, Cache]:
        """``places``: positions of the tokens; ``fixed``: the cache has its full size already."""
        x, kept = self.token(tokens) + self.place(places), []
        for number, block in enumerate(self.blocks):
            x, now = block(x, cache[number] if cache else None, places if fixed else None)
            kept.append(now)
        return self.head(self.norm(x[:, -1:])).argmax(-1), kept


class Generator(nn.Module):
    """One call makes one token: the first of a request reads the prompt (prefill), the others decode."""

    def __init__(self, model: Decoder, mode: str) -> None:
        super().__init__()
        self.model, self.mode = model, mode
        self.fixed = mode in ("compile", "graph")
        self.cache: Cache | None = None
        self.decode: Callable[..., tuple[Tensor, Cache]] = (
            torch.compile(model) if mode == "compile" else model
        )
        self.captured: tuple[Any, Tensor, Tensor, Tensor] | None = None

    def forward(self, tokens: Tensor, start: int, phase: str) -> Tensor:
        """The token after ``tokens``, the first of which is at position ``start``."""
        with record_function(phase):
            places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
            if phase == "decode" and self.mode == "graph" and tokens.is_cuda:
                return self.replay(tokens, places)
            run = self.decode if phase == "decode" else self.model
            token, cache = run(tokens, places, self.cache, self.fixed)
            if self.mode == "cache":
                self.cache = cache
            return token

    def new_request(self, batch: int) -> None:
        """Empty the cache; a cache of fixed size is made once and written over."""
        if self.fixed and self.cache is None:
            place = self.model.place.weight
            shape = (batch, place.shape[1] // HEAD, place.shape[0], HEAD)
            self.cache = [(place.new_zeros(shape), place.new_zeros(shape)) for _ in self.model.blocks]
        elif not self.fixed:
            self.cache = None

    def replay(self, tokens: Tensor, places: Tensor) -> Tensor:
        """A token by one launch; the first call captures the graph."""
        if self.captured is None:
            fixed, side = (tokens.clone(), places.clone()), torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.model(*fixed, self.cache, True)  # what is set up at the first use must not be captured
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                token, _ = self.model(*fixed, self.cache, True)
            self.captured = graph, *fixed, token
        graph, fixed_tokens, fixed_places, token = self.captured
        fixed_tokens.copy_(tokens)
        fixed_places.copy_(places)
        graph.replay()
        return token.clone()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, default="cache")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--prompt", type=int, default=2016)
    parser.add_argument("--new", type=int, default=32, help="new tokens of a request")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--requests", type=int, default=5)
    return parser.parse_args()


def fit_to_cpu(args: argparse.Namespace) -> None:
    """Sizes that a CPU can do in seconds; says what was changed."""
    torch.set_num_threads(1)  # at these sizes several threads mostly wait for each other
    if args.mode == "compile" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        sys.exit("torch.compile needs a C++ compiler on a CPU, and none is on the PATH: install g++ or clang")
    small = {name: min(getattr(args, name), size) for name, size in CPU_SIZES.items()}
    vars(args).update(small)
    said = ", ".join(f"{name} {size}" for name, size in small.items())
    without = "; without a CUDA graph" if args.mode == "graph" else ""
    print(f"no GPU here: {said}, one thread, so that a CPU finishes in seconds{without}", flush=True)


class Stopwatch:
    """Times between moments: CUDA events on a GPU, so that nobody waits for it, else the host's clock."""

    def __init__(self, gpu: bool) -> None:
        self.gpu = gpu

    def now(self) -> Any:
        """This moment."""
        if not self.gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def median_ms(self, pairs: list[tuple[Any, Any]]) -> float:
        """Median of the times between two moments; waits for the GPU."""
        if self.gpu:
            torch.cuda.synchronize()
        return statistics.median(a.elapsed_time(b) if self.gpu else 1e3 * (b - a) for a, b in pairs)


def main() -> None:
    """Answer ``--requests`` requests, and say what prefill and a token took in the last one."""
    args = arguments()
    gpu = torch.cuda.is_available()
    if not gpu:
        fit_to_cpu(args)
    device, kind = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    torch.manual_seed(0)
    model = Decoder(args.layers, args.width, args.prompt + args.new).to(device, kind).eval()
    generator, watch = Generator(model, args.mode).eval(), Stopwatch(gpu)
    prompt = torch.randint(VOCABULARY, (args.batch, args.prompt), device=device)
    tokens, moments = prompt, list[Any]()
    with torch.inference_mode():
        for _ in range(args.requests):
            generator.new_request(args.batch)
            tokens, token, moments = prompt, prompt, [watch.now()]
            for number in range(args.new):
                seen = tokens if number == 0 or args.mode == "no_cache" else token
                start = tokens.shape[1] - seen.shape[1]
                token = generator(seen, start, "decode" if number else "prefill")
                tokens = torch.cat((tokens, token), 1)
                moments.append(watch.now())
    pairs = list(itertools.pairwise(moments))
    print(
        f"{args.mode}: {args.requests} requests, prompt {args.prompt}, {args.new} new tokens, batch "
        f"{args.batch} on {device}; prefill {watch.median_ms(pairs[:1]):.3f} ms, then "
        f"{watch.median_ms(pairs[1:]):.3f} ms per token; sum of tokens {int(tokens.sum())}"
    )


if __name__ == "__main__":
    main()
