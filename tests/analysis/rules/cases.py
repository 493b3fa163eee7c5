"""For each rule a trace that has it and one that has not; sentences of slices, one screen a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from profrun.analysis.rules.step_cost import UnprofiledStep
from profrun.contract.provenance import GpuStates, Provenance
from tests.analysis.kit import Row, run, step
from tests.analysis.rules import sampled_cases as sampled

LAUNCH = "cudaLaunchKernel"
NVJET = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32_warpgroupsize1x1x1_kernel__5x_cublas"
SGEMM = "ampere_sgemm_128x64_nn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)"
FLASH = "void flash::flash_fwd_kernel<cutlass::bfloat16_t>(flash::Flash_fwd_params)"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
US = 1000


@dataclass
class Case:
    """Rows and settings of one trace."""

    rows: Sequence[Row]
    options: Mapping[str, Any] = field(default_factory=dict)
    provenance: Provenance | None = None
    says: str = ""  # words that the message must have
    unprofiled: UnprofiledStep | None = None


def gpu(
    work: Sequence[tuple[str, int, int]],
    *,
    count: int = 3,
    length: int = 100 * US,
    columns: Mapping[str, Any] | None = None,
    host: Sequence[Row] = (),
    call: int | None = 2 * US,
    stream: int = 7,
) -> list[Row]:
    """``count`` equal steps; ``work`` is (kernel, start in the step, duration); each is launched 5 us
    before, by a call that takes ``call`` ns, or (None) returns 3 us after its kernel ended."""
    rows: list[Row] = []
    for number in range(count):
        at = number * length
        rows.append(step(number, at, length))
        for kind, name, ts, dur, track, *rest in host:
            rows.append((kind, name, at + ts, dur, track, *rest))
        for name, ts, dur in work:
            rows.append(("api", LAUNCH, at + ts - 5 * US, call or 8 * US + dur, "main"))
            extra = {"launch": len(rows) - 1} | dict(columns or {})
            rows.append(("kernel", name, at + ts, dur, f"stream {stream}", extra))
    return rows


def zeroed(*, additions: bool) -> list[Row]:
    """Steps whose ``zero_grad()`` fills for 10 us; the backward then adds for 20 us, or does not."""
    host: list[Row] = [
        ("range", "Optimizer.zero_grad#SGD.zero_grad", 3 * US, 8 * US, "main"),
        ("op", "aten::_foreach_zero_", 4 * US, 6 * US, "main"),
    ]
    if additions:
        host.append(("op", "torch::autograd::AccumulateGrad", 45 * US, 20 * US, "main"))
    host.append(("op", "aten::add_", 46 * US, 10 * US, "main"))
    return gpu([(FILL, 10 * US, 10 * US), (NVJET, 20 * US, 30 * US), (ADD, 55 * US, 20 * US)], host=host)


CONVOLUTION = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x64_cudnn"
LAYOUT = "void nchwToNhwcKernel<float, float, float, true, false>(float const*, float*)"


def quiet(ns: int) -> list[Row]:
    """Two steps with two ops and a kernel each; between the ops nothing is recorded for a time."""
    ops: list[Row] = [
        ("op", "aten::mul", 0, 20 * US, "main"),
        ("op", "aten::add", 20 * US + ns, 20 * US, "main"),
    ]
    return gpu([(ADD, 30 * US + ns, 5 * US)], count=2, length=100 * US + ns, host=ops)


def twin(us: float) -> UnprofiledStep:
    """A step time without a profiler."""
    ns = round(us * US)
    return UnprofiledStep(ns, ns, ns, 2, 10, "wall")


WHOLE = [run(0, 1000 * US), *gpu([(ADD, 10 * US, 4 * US)])[1:3]]
"""A run of 1 ms that launches one kernel after 5 us."""
BUSY = gpu([(NVJET, 10 * US, 85 * US)])
IDLE = gpu([(ADD, 10 * US, 4 * US)])
BLOCKED = gpu([(ADD, 10 * US, 4 * US), (ADD, 40 * US, 20 * US)], call=None)


def copies(
    direction: str, *, kind: str = "pinned", size: int = 1 << 20, dur: int = 20 * US, name: str = ""
) -> list[Row]:
    """Two steps with a GEMM and one copy each, on one stream."""
    rows = gpu([(NVJET, 10 * US, 30 * US)], count=2)
    for number in range(2):
        at = number * 100 * US
        rows.append(("api", "cudaMemcpyAsync", at + 40 * US, 2 * US, "main"))
        side = "src_kind" if direction == "HtoD" else "dst_kind"
        rows.append(
            (
                "memcpy",
                name or f"Memcpy {direction}",
                at + 45 * US,
                dur,
                "stream 7",
                {
                    "launch": len(rows) - 1,
                    "copies.direction": direction,
                    "copies.bytes": size,
                    f"copies.{side}": kind,
                },
            )
        )
    return rows


def grid(blocks: int, **more: Any) -> dict[str, Any]:
    """Columns of a kernel with so many blocks of 256 threads."""
    sizes = {"grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}
    return {f"kernels.{key}": value for key, value in (sizes | more).items()}


def comm(first: int, second: int) -> list[Row]:
    """Two ranks with one all-reduce each of the given durations, ending together, and a GEMM before."""
    rows: list[Row] = []
    for rank, dur in ((0, first), (1, second)):
        track = f"r{rank}:"
        rows += [
            ("step", "profrun.step#0", 0, 200 * US, f"{track}main"),
            ("api", LAUNCH, 1 * US, 1 * US, f"{track}main"),
        ]
        rows.append(("kernel", NVJET, 5 * US, 150 * US - dur, f"{track}stream 7", {"launch": len(rows) - 1}))
        rows.append(
            (
                "kernel",
                NCCL,
                160 * US - dur,
                dur,
                f"{track}stream 9",
                {
                    "collectives.op": "allreduce",
                    "collectives.group": "0",
                    "collectives.group_size": 2,
                    "collectives.bytes": 1 << 20,
                },
            )
        )
    return rows


def overlapped() -> list[Row]:
    """One rank whose all-reduce runs under a GEMM."""
    return [("kernel", NVJET, 0, 100 * US, "stream 7"), ("kernel", NCCL, 10 * US, 50 * US, "stream 9")]


def matmul(name: str, shapes: str, dur: int) -> list[Row]:
    """One step of one op with shapes that launches one GEMM."""
    return [
        step(0, 0, 100 * US),
        (
            "op",
            name,
            1 * US,
            8 * US,
            "main",
            {"ops.shapes": shapes, "ops.dtypes": '["c10::BFloat16", "c10::BFloat16"]'},
        ),
        ("api", LAUNCH, 2 * US, 2 * US, "main"),
        ("kernel", NVJET, 10 * US, dur, "stream 7", {"launch": 2}),
    ]


def under(
    op: str, call: str, dur: int = 20 * US, *, python: str | None = None, inner: str | None = None
) -> list[Row]:
    """A step with a GEMM, and a call (under an op, under a Python frame)."""
    rows = gpu([(NVJET, 10 * US, 60 * US)], count=1)
    if python:
        rows.append(("python", python, 40 * US, dur + 20 * US, "main"))
    if op:
        rows.append(("op", op, 45 * US, dur + 10 * US, "main"))
    if inner:
        rows.append(("op", inner, 46 * US, dur + 8 * US, "main"))
    rows.append(("api", call, 50 * US, dur, "main"))
    return rows


def variance(spread: int) -> list[Row]:
    """Twelve equal launches of one kernel, every other one longer by ``spread``."""
    return [
        ("kernel", ADD, at * 100 * US, 50 * US + (at % 2) * spread, "stream 7", grid(528)) for at in range(12)
    ]


def used(bytes_: int) -> dict[str, Any]:
    """An allocator counter with one total."""
    return {
        "side": {
            "tracks": [{"track": 90, "kind": "counter", "process": 0, "device": 0, "name": "memory"}],
            "counters": [
                {"track": 90, "ts_ns": 1, "name": "allocated", "value": float(bytes_), "unit": "byte"},
                {"track": 90, "ts_ns": 2, "name": "allocated", "value": 0.0, "unit": "byte"},
            ],
        }
    }


def queue(length: int) -> list[Row]:
    """``length`` launches 10 ns apart, kernels of 1 us one after the other."""
    rows: list[Row] = []
    for number in range(length):
        rows.append(("api", LAUNCH, number * 10, 5, "main", {"parent": None}))
        rows.append(("kernel", ADD, 20_000 + number * US, US, "stream 7", {"launch": len(rows) - 1}))
    return rows


GPU_NAME = Provenance(
    trial="t", gpus=GpuStates(({"name": "x"},), ({"name": "x", "throttled_by": ["sw_power_cap"]},))
)
GPU_IDLE = Provenance(trial="t", gpus=GpuStates(({"name": "x", "throttled_by": ["gpu_idle"]},)))
ONE_THREAD = Provenance(trial="t", cpus=4, environment={"OMP_NUM_THREADS": "1"})
TWO_OF_THREE = Provenance(trial="t", cpus=3, environment={"OMP_NUM_THREADS": "2"})
DYNAMO = "TorchDynamo Cache Lookup"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
BIG, SMALL = "[[4096, 4096], [4096, 4096]]", "[[4096, 64], [64, 64]]"

COMPILES = [
    ("op", "_compile.compile_inner (dynamo_timed)", 5 * US, 40 * US, "main"),
    ("op", "OutputGraph.call_user_compiler (dynamo_timed)", 9 * US, 20 * US, "main"),
    ("op", "Torch-Compiled Region: 0/1", 50 * US, 9 * US, "main"),
]
RUNS_COMPILED = [
    ("op", DYNAMO, 1 * US, 2 * US, "main"),
    ("op", "Torch-Compiled Region: 0/3", 5 * US, 40 * US, "main"),
    ("op", "CompiledFunction", 6 * US, 30 * US, "main"),
    ("op", "CompiledFunctionBackward", 50 * US, 30 * US, "main"),
]

CASES: dict[str, tuple[Case, Case]] = {
    # rule: (has it, has it not)
    "overhead-bound": (Case(IDLE, says="waits for the host"), Case(BUSY)),
    "low-utilization": (Case(IDLE), Case(BUSY)),
    "compute-bound": (
        Case(matmul("aten::mm", BIG, 85 * US), says="peak"),
        Case(matmul("aten::mm", SMALL, 85 * US)),
    ),
    "memory-bound": (Case(gpu([(ADD, 10 * US, 85 * US)])), Case(BUSY)),
    "dominant-kernel": (
        Case(gpu([(NVJET, 10 * US, 60 * US), (ADD, 75 * US, 5 * US)])),
        Case(gpu([(NVJET, 10 * US, 30 * US), (ADD, 45 * US, 30 * US), (SOFTMAX, 76 * US, 20 * US)])),
    ),
    "set-up": (Case(WHOLE, says="while the program sets up"), Case(IDLE)),
    "tiny-kernels": (Case(gpu([(ADD, 6 * US + at * 5 * US, 2 * US) for at in range(12)])), Case(IDLE)),
    "kernel-mix": (
        Case(gpu([(NVJET, 10 * US, 10 * US), (ADD, 30 * US, 5 * US)]), says="1 elementwise + 1 gemm"),
        Case([("kernel", NVJET, 0, 10, "stream 7")]),
    ),
    "profiler-overhead": (
        Case([*BUSY, ("overhead", "Instrumentation", 0, 50 * US, "overhead")]),
        Case([*BUSY, ("overhead", "Instrumentation", 0, 5 * US, "overhead")]),
    ),
    "buffer-request": (
        Case(
            [step(0, 0, 900 * US), ("overhead", "Activity Buffer Request", 10, 200 * US, "main")],
            says="Buffer Request",
        ),
        Case([step(0, 0, 900 * US), ("overhead", "Activity Buffer Request", 10, 20 * US, "main")]),
    ),
    "launch-blocking": (Case(BLOCKED), Case(IDLE)),
    "graph-kernels-hidden": (
        Case([("api", "cudaGraphLaunch", 0, 5, "main"), ("kernel", ADD, 9, 5, "stream 7")]),
        Case([("api", "cudaGraphLaunch", 0, 5, "main"), ("kernel", ADD, 9, 5, "stream 7", {"launch": 0})]),
    ),
    "cold-start": (
        Case([step(0, 0, 300), step(1, 300, 100), step(2, 400, 100)]),
        Case([step(0, 0, 120), step(1, 120, 100), step(2, 220, 100)]),
    ),
    "dead-window": (
        Case([step(0, 0, 200 * US), ("op", "aten::mm", 80 * US, 5 * US, "main")]),
        Case([step(0, 0, 200 * US), ("op", "aten::mm", 20 * US, 5 * US, "main")]),
    ),
    "dataloader-stall": (
        Case([step(0, 0, 100 * US), ("op", LOADER, 5 * US, 20 * US, "main")]),
        Case([step(0, 0, 100 * US), ("op", LOADER, 5 * US, 2 * US, "main")]),
    ),
    "few-cpu-threads": (
        Case(
            [
                step(0, 0, 100 * US),
                ("op", "aten::mm", 5 * US, 40 * US, "main"),
                ("op", "aten::mm", 50 * US, 40 * US, "main"),
                ("api", LAUNCH, 60 * US, 2 * US, "main"),
            ],
            provenance=ONE_THREAD,
            says="OMP_NUM_THREADS=1 on 4 cores: 40 us per step pass in matrix work on the CPU, 40.0 % of",
        ),
        Case([step(0, 0, 100 * US), ("op", "aten::mm", 5 * US, 40 * US, "main")], provenance=TWO_OF_THREE),
    ),
    "dynamo-lookup": (
        Case([step(0, 0, 100 * US), ("op", DYNAMO, 5 * US, 10 * US, "main")]),
        Case([step(0, 0, 100 * US), ("op", DYNAMO, 5 * US, 2 * US, "main")]),
    ),
    "recompilation": (
        Case(
            [step(0, 0, 100 * US), *COMPILES], says="the compiler works 40 us per step (1 times in 1 steps)"
        ),
        Case([step(0, 0, 100 * US), *RUNS_COMPILED]),
    ),
    "allocator-churn": (
        Case(
            [step(0, 0, 100), ("api", "cudaMalloc", 5, 9, "main"), ("api", "cudaFree", 20, 9, "main")],
            says="cudaFree",
        ),
        Case([step(0, 10, 100), ("api", "cudaMalloc", 0, 9, "main"), ("api", "cudaMemcpy", 20, 9, "main")]),
    ),
    "occupancy-queries": (
        Case(
            [
                step(0, 0, 100),
                ("op", "aten::mm", 4, 50, "main"),
                ("api", "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 5, 9, "main"),
            ],
            says="aten::mm",
        ),
        Case([step(0, 0, 100), ("api", LAUNCH, 5, 9, "main")]),
    ),
    "memory-near-full": (Case(BUSY, used(140 * 10**9)), Case(BUSY, used(40 * 10**9))),
    "implicit-sync": (
        Case(
            under(
                "aten::item",
                "cudaStreamSynchronize",
                python="train.py(12): step",
                inner="aten::_local_scalar_dense",
            ),
            says="train.py(12): step",
        ),
        Case(under("aten::mm", LAUNCH)),
    ),
    "explicit-sync": (
        Case(under("", "cudaDeviceSynchronize")),
        Case(under("aten::item", "cudaStreamSynchronize")),
    ),
    "full-queue": (Case(queue(1100)), Case(queue(50))),
    "host-device-copies": (Case(copies("HtoD"), says="HtoD"), Case(copies("DtoD"))),
    "pageable-copies": (Case(copies("DtoH", kind="pageable"), says="pageable"), Case(copies("DtoH"))),
    "copy-before-gemm": (
        Case(
            [
                ("op", "aten::addmm", 0, 50, "main"),
                ("api", "cudaMemcpyAsync", 5, 5, "main"),
                (
                    "memcpy",
                    "Memcpy DtoD",
                    20,
                    9,
                    "stream 7",
                    {"launch": 1, "copies.direction": "DtoD", "copies.bytes": 8},
                ),
            ]
        ),
        Case(
            [
                ("op", "aten::clone", 0, 50, "main"),
                ("api", "cudaMemcpyAsync", 5, 5, "main"),
                (
                    "memcpy",
                    "Memcpy DtoD",
                    20,
                    9,
                    "stream 7",
                    {"launch": 1, "copies.direction": "DtoD", "copies.bytes": 8},
                ),
            ]
        ),
    ),
    "copies-not-overlapped": (
        Case(copies("HtoD")),
        Case([*copies("HtoD"), ("kernel", ADD, 0, 200 * US, "stream 9")]),
    ),
    "fp32-gemm": (Case(gpu([(SGEMM, 10 * US, 20 * US)])), Case(gpu([(TF32, 10 * US, 20 * US)]))),
    "tf32-gemm": (Case(gpu([(TF32, 10 * US, 20 * US)])), Case(gpu([(NVJET, 10 * US, 20 * US)]))),
    "unfused-attention": (
        Case(
            gpu(
                [(NVJET, 10 * US, 20 * US), (SOFTMAX, 40 * US, 5 * US)],
                host=[
                    ("op", "aten::bmm", 3 * US, 20 * US, "main"),
                    ("op", "aten::_softmax", 30 * US, 8 * US, "main"),
                ],
            )
        ),
        Case(
            gpu(
                [(FLASH, 10 * US, 20 * US), (SOFTMAX, 40 * US, 5 * US)],
                host=[
                    ("op", "aten::bmm", 3 * US, 20 * US, "main"),
                    ("op", "aten::_softmax", 30 * US, 8 * US, "main"),
                ],
            )
        ),
    ),
    "host-code": (Case(quiet(2000 * US), says="2 ms per step"), Case(quiet(500 * US))),
    "slower-twin": (Case(BUSY, unprofiled=twin(130), says="130 us"), Case(BUSY, unprofiled=twin(120))),
    "zeroed-gradients": (
        Case(zeroed(additions=True), says="30 us of GPU time per step"),
        Case(zeroed(additions=False)),
    ),
    "layout-changes": (
        Case(gpu([(LAYOUT, 10 * US, 10 * US), (CONVOLUTION, 30 * US, 30 * US)]), says="10 us per step"),
        Case(gpu([(LAYOUT, 10 * US, 10 * US), (NVJET, 30 * US, 30 * US)])),
    ),
    "pointwise-chains": (
        Case(
            gpu([(NVJET, 10 * US, 20 * US), (ADD, 40 * US, 5 * US), (ADD, 50 * US, 5 * US)]),
            says="longest of 2",
        ),
        Case(
            gpu(
                [
                    (ADD, 10 * US, 5 * US),
                    (NVJET, 20 * US, 20 * US),
                    (ADD, 50 * US, 5 * US),
                    (NVJET, 60 * US, 9 * US),
                ]
            )
        ),
    ),
    "inductor-fusion": (
        Case(gpu([("triton_poi_fused_gelu_mul_0", 10 * US, 5 * US)]), says="gelu + mul"),
        Case(BUSY),
    ),
    "few-blocks": (
        Case(gpu([(ADD, 10 * US, 5 * US)], columns=grid(8))),
        Case(gpu([(ADD, 10 * US, 5 * US)], columns=grid(528))),
    ),
    "low-occupancy": (
        Case(gpu([(ADD, 10 * US, 5 * US)], columns=grid(528, est_occupancy=0.1))),
        Case(gpu([(ADD, 10 * US, 5 * US)], columns=grid(528, est_occupancy=0.9))),
    ),
    "kernel-variance": (Case(variance(40 * US)), Case(variance(4 * US))),
    "throttled": (Case(BUSY, provenance=GPU_NAME, says="sw_power_cap"), Case(BUSY, provenance=GPU_IDLE)),
    "power-capped": (
        Case(sampled.STEPS, sampled.options(sampled.POWER_CAPPED), says="1580 of 1980 MHz then at 694 W"),
        Case(sampled.STEPS, sampled.options(sampled.SET_CLOCKS)),
    ),
    "thermal-throttled": (
        Case(sampled.STEPS, sampled.options(sampled.HOT), says="heat acts in"),
        Case(sampled.STEPS, sampled.options(sampled.POWER_CAPPED)),
    ),
    "unsteady-window": (
        Case(
            sampled.STEPS, sampled.options(sampled.EARLY_WINDOW, "torch"), says="the steady phase is phase 2"
        ),
        Case(sampled.STEPS, sampled.options(sampled.STEADY_WINDOW, "torch")),
    ),
    "clock-variance": (
        Case(sampled.STEPS, sampled.options(sampled.CLOCKED), says="of the variance goes with the SM clock"),
        Case(sampled.STEPS, sampled.options(sampled.UNRELATED)),
    ),
    "noisy-neighbour": (
        Case(sampled.STEPS, sampled.options(sampled.NEIGHBOUR), says="1.5 cores busy with other work"),
        Case(sampled.STEPS, sampled.options(sampled.HARMLESS)),
    ),
    "exposed-communication": (
        Case([("kernel", NVJET, 0, 50 * US, "stream 7"), ("kernel", NCCL, 60 * US, 40 * US, "stream 9")]),
        Case(overlapped()),
    ),
    "cpu-communication": (
        Case(
            [
                step(0, 0, 100 * US),
                ("op", "aten::mm", 0, 30 * US, "main"),
                ("range", "gloo:all_reduce", 20 * US, 30 * US, "gloo"),
                ("range", "gloo:all_reduce", 60 * US, 50 * US, "gloo"),
                ("op", "aten::add", 60 * US, 10 * US, "main"),
            ],
            says="50 us per step pass in collectives on the CPU (2 per step) while no operator runs, 50.0 %",
        ),
        Case(
            [
                step(0, 0, 100 * US),
                ("op", "aten::mm", 0, 90 * US, "main"),
                ("range", "gloo:all_reduce", 20 * US, 74 * US, "gloo"),
            ]
        ),
    ),
    "cpu-optimizer": (
        Case(
            [
                step(0, 0, 100 * US),
                ("range", "Optimizer.step#AdamW.step", 50 * US, 40 * US, "main"),
                ("op", "aten::mul_", 51 * US, 5 * US, "main"),
                ("op", "aten::addcdiv_", 60 * US, 20 * US, "main"),
                ("op", "aten::to", 61 * US, 5 * US, "main"),
            ],
            says="AdamW updates parameters with 2 operators per step, 40 us per step, 40.0 % of the recorded",
        ),
        Case(
            [
                step(0, 0, 100 * US),
                ("range", "Optimizer.step#AdamW.step", 50 * US, 40 * US, "main"),
                ("op", "aten::_fused_adamw_", 51 * US, 30 * US, "main"),
            ]
        ),
    ),
    "cpu-pointwise": (
        Case(
            [
                step(0, 0, 100 * US),
                ("op", "aten::linear", 0, 20 * US, "main"),
                ("op", "aten::mul", 20 * US, 20 * US, "main"),
                ("op", "aten::tanh", 42 * US, 18 * US, "main"),
                ("op", "aten::linear", 60 * US, 20 * US, "main"),
                ("op", "aten::add", 80 * US, 20 * US, "main"),
            ],
            says="1 chain of point-wise operators per step, the longest of 2 operators, takes 40 us per step",
        ),
        Case(
            [
                step(0, 0, 100 * US),
                ("op", "aten::mul", 20 * US, 20 * US, "main"),
                ("op", "aten::linear", 40 * US, 20 * US, "main"),
                ("op", "aten::add", 80 * US, 20 * US, "main"),
            ]
        ),
    ),
    "straggler": (
        Case(comm(60 * US, 10 * US), {"ranks": 2}, says="rank 1"),
        Case(comm(20 * US, 20 * US), {"ranks": 2}),
    ),
}

Make = Callable[[Case], Any]
