"""Changes of a program that need no change of its files: ``CHANGES``, the only list of them.

A change is made by environment variables, or by the hook inside the job (``in_job/changes``), or by both. A
job names changes per variant (``changes: {faster: [loader-workers=4, tf32]}``), and rules of the diagnosis
name those that may help. ``parse`` reads such a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Exactness = Literal["same", "rounding", "precision"]
"""What a change may do to the numbers that a program computes. ``same``: nothing but the order in which
concurrent sums are added. ``rounding``: the same type, but sums in another order. ``precision``: another type
or fewer bits."""

FORM = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*(?:=[A-Za-z0-9_.-]+)?"
"""How a change is written: its name, and behind ``=`` its value."""


@dataclass(frozen=True)
class ChangeKind:
    """One kind of change.

    Attributes:
        name: as a job writes it.
        what: what it changes, one sentence; ``{value}`` stands for the value.
        exactness: what it may do to the numbers that the program computes.
        may_break: what can go wrong with it.
        permanent: the line of code, or the variable, that makes it permanent; ``{value}`` as above.
        group: changes of one group exclude each other: only the best of them is kept.
        env: variables that make it; ``{value}`` as above. Empty where the hook alone makes it.
        hook: whether the hook has a part in it.
        value: the value where none is written; empty for a change without values.
        values: what a value must match in whole; empty for a change without values.
    """

    name: str
    what: str
    exactness: Exactness
    may_break: str
    permanent: str
    group: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    hook: bool = True
    value: str = ""
    values: str = ""


@dataclass(frozen=True)
class Change:
    """A change with its value.

    Attributes:
        kind: what it is.
        value: empty for a kind without values.
    """

    kind: ChangeKind
    value: str = ""

    @property
    def text(self) -> str:
        """As a job writes it: ``tf32``, ``loader-workers=4``."""
        return f"{self.kind.name}={self.value}" if self.value else self.kind.name

    @property
    def group(self) -> str:
        """What excludes it: of the changes of one group only one can be made; its name if it has no group."""
        return self.kind.group or self.kind.name

    @property
    def what(self) -> str:
        """What it changes, one sentence."""
        return self._filled(self.kind.what)

    @property
    def permanent(self) -> str:
        """What makes it permanent: a line of code or a variable."""
        return self._filled(self.kind.permanent)

    @property
    def env(self) -> dict[str, str]:
        """The variables that make it."""
        return {name: self._filled(text) for name, text in self.kind.env.items()}

    def _filled(self, text: str) -> str:
        return text.replace("{value}", self.value)


_KINDS = (
    ChangeKind(
        "tf32",
        "Matrix products of fp32 tensors run in TF32, also where the program asks for more bits.",
        "precision",
        "Products have 10 bits of mantissa instead of 23; results differ from the fourth digit on.",
        'torch.set_float32_matmul_precision("high")',
        group="precision",
        env={"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"},
    ),
    ChangeKind(
        "autocast",
        "The forward of the root module runs under autocast in {value}; its outputs become fp32 again.",
        "precision",
        "{value} has fewer bits than fp32; with fp16 gradients can underflow, so fp16 is for inference only.",
        'with torch.autocast("cuda", dtype=torch.{value}): outputs = model(inputs)',
        group="precision",
        value="bfloat16",
        values="bfloat16|float16",
    ),
    ChangeKind(
        "compile",
        "Root modules are compiled: module.compile(mode={value}).",
        "rounding",
        "The first steps take seconds to minutes longer, and inputs of new shapes are compiled again. With "
        "reduce-overhead and max-autotune, calls overwrite earlier outputs on a GPU.",
        'model.compile(mode="{value}")',
        group="compile",
        value="default",
        values="default|reduce-overhead|max-autotune",
    ),
    ChangeKind(
        "cuda-graphs",
        "Forward and backward of root modules are replayed as CUDA graphs.",
        "rounding",
        "The module must not wait for the GPU or branch on values; calls overwrite earlier outputs. Where "
        "several backwards add up their gradients, each parameter p needs p.register_hook(torch.clone): see "
        "pytorch issue 181723.",
        "model = torch.cuda.make_graphed_callables(model, (inputs,))",
        group="compile",
    ),
    ChangeKind(
        "compile-dynamic",
        "torch.compile takes sizes as variable from the first call on, and compiles once for all sizes.",
        "rounding",
        "Code for variable sizes can be slower than code for one size.",
        "torch.compile(model, dynamic=True)",
    ),
    ChangeKind(
        "loader-workers",
        "DataLoaders get {value} persistent worker processes, and pinned memory where there is a GPU.",
        "same",
        "Data that is loaded with random changes has other random numbers; workers take memory.",
        "DataLoader(..., num_workers={value}, persistent_workers=True, pin_memory=True)",
        group="loader",
        value="4",
        values="[1-9][0-9]{0,2}",
    ),
    ChangeKind(
        "loader-prefetch",
        "Each worker process of a DataLoader loads {value} batches ahead.",
        "same",
        "The batches that wait take memory.",
        "DataLoader(..., num_workers=N, prefetch_factor={value})",
        value="8",
        values="[1-9][0-9]{0,2}",
    ),
    ChangeKind(
        "pinned-memory",
        "Tensors are copied to the GPU from pinned memory with non_blocking=True; DataLoaders pin batches.",
        "same",
        "A tensor on the CPU that is overwritten right after its copy began can reach the GPU changed.",
        "DataLoader(..., pin_memory=True) and tensor.to(device, non_blocking=True)",
    ),
    ChangeKind(
        "fused-optimizer",
        "Optimizers that can run as one fused kernel do so: fused=True.",
        "rounding",
        "The last bits of parameters differ.",
        "torch.optim.AdamW(..., fused=True)",
        group="optimizer",
    ),
    ChangeKind(
        "foreach-optimizer",
        "Optimizers update all parameters with few kernels: foreach=True.",
        "rounding",
        "It takes about as much more memory as the parameters have.",
        "torch.optim.AdamW(..., foreach=True)",
        group="optimizer",
    ),
    ChangeKind(
        "set-to-none",
        "zero_grad() removes gradients instead of filling them with zeros.",
        "same",
        "A program that reads .grad after zero_grad() finds None.",
        "optimizer.zero_grad(set_to_none=True)",
    ),
    ChangeKind(
        "channels-last",
        "Root modules and their 4-dimensional inputs have the memory format channels_last.",
        "rounding",
        "Operations that know only contiguous tensors copy them first.",
        "model.to(memory_format=torch.channels_last), and the same for the inputs",
    ),
    ChangeKind(
        "attention",
        "scaled_dot_product_attention uses only the backend {value} where that can run.",
        "rounding",
        "Where the backend cannot run with the given mask, type or size, the program fails.",
        "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.{value}): ...",
        group="attention",
        value="FLASH_ATTENTION",
        values="FLASH_ATTENTION|EFFICIENT_ATTENTION|CUDNN_ATTENTION|MATH",
    ),
    ChangeKind(
        "cudnn-benchmark",
        "cuDNN measures its algorithms at the first call of each convolution and keeps the fastest.",
        "rounding",
        "Each new shape costs a measurement, and another algorithm may be chosen in the next run.",
        "torch.backends.cudnn.benchmark = True",
    ),
    ChangeKind(
        "bucket-size",
        "DistributedDataParallel sums gradients in buckets of {value} MB.",
        "rounding",
        "Larger buckets start later, so less of the communication runs beside the backward.",
        "DistributedDataParallel(..., bucket_cap_mb={value})",
        group="buckets",
        value="100",
        values="[1-9][0-9]{0,3}",
    ),
    ChangeKind(
        "no-empty-cache",
        "torch.cuda.empty_cache() does nothing.",
        "same",
        "Memory stays reserved, which other processes on the GPU may need.",
        "remove the calls of torch.cuda.empty_cache() from the loop",
    ),
    ChangeKind(
        "no-synchronize",
        "torch.cuda.synchronize() does nothing.",
        "same",
        "Times that the program measures end too early; tensors copied to the CPU may be read too early.",
        "remove the calls of torch.cuda.synchronize() from the loop",
    ),
    ChangeKind(
        "expandable-segments",
        "torch's allocator grows its segments instead of making new ones.",
        "same",
        "Memory cannot be shared between processes through CUDA IPC.",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        hook=False,
    ),
    ChangeKind(
        "cpu-threads",
        "Operations on the CPU use {value} threads.",
        "rounding",
        "More threads than free cores make each other slower.",
        "OMP_NUM_THREADS={value}",
        env={"OMP_NUM_THREADS": "{value}", "MKL_NUM_THREADS": "{value}"},
        hook=False,
        value="4",
        values="[1-9][0-9]{0,3}",
    ),
    ChangeKind(
        "connections",
        "The number of queues from the driver to the GPU is {value}.",
        "same",
        "Streams that were independent may wait for each other, or launches may come in another order.",
        "CUDA_DEVICE_MAX_CONNECTIONS={value}",
        env={"CUDA_DEVICE_MAX_CONNECTIONS": "{value}"},
        hook=False,
        value="1",
        values="[1-9]|[12][0-9]|3[0-2]",
    ),
    ChangeKind(
        "nccl-channels",
        "NCCL uses at least {value} channels, each a block on the GPU.",
        "rounding",
        "The blocks of NCCL take room from kernels that run beside it.",
        "NCCL_MIN_NCHANNELS={value}",
        env={"NCCL_MIN_NCHANNELS": "{value}"},
        hook=False,
        value="16",
        values="[1-9]|[1-5][0-9]|6[0-4]",
    ),
    ChangeKind(
        "nothing",
        "Nothing is changed: an A/A experiment, which shows how often profrun finds a difference by chance.",
        "same",
        "Nothing.",
        "nothing",
        hook=False,
        value="1",
        values="[1-9][0-9]{0,3}",
    ),
)

CHANGES: Mapping[str, ChangeKind] = {kind.name: kind for kind in _KINDS}
"""Name -> kind."""


def parse(text: str) -> Change:
    """A change as a job writes it; without ``=`` it has the value that its kind has then.

    Raises:
        ValueError: there is no such change, or it has no such value; says which there are.
    """
    name, equals, value = text.partition("=")
    kind = CHANGES.get(name)
    if kind is None:
        raise ValueError(f"there is no change '{name}'")
    if not equals:
        return Change(kind, kind.value)
    if not kind.values:
        raise ValueError(f"the change '{name}' has no value")
    if not re.fullmatch(kind.values, value):
        raise ValueError(f"the change '{name}' has no value '{value}'; values match {kind.values}")
    return Change(kind, value)


def with_own(own: Sequence[str], changes: Sequence[str]) -> tuple[str, ...]:
    """The changes that a base has with further ones; of those that exclude each other the further one."""
    groups = {parse(text).group for text in changes}
    return (*(text for text in own if parse(text).group not in groups), *changes)
