"""The recordings that damage is planted into: 48 of all families, with host and GPU records.

Paths are relative to the folder of shared files. ``a.tar.xz!member`` is a file in an archive, which is
unpacked first; several paths are one recording.
"""

from __future__ import annotations

import fnmatch
import tarfile
from dataclasses import dataclass
from pathlib import Path

from planted_damage.databases import Nsys, Rocpd, RocprofV1, Rpd
from planted_damage.kineto import Kineto
from planted_damage.model import Recording
from planted_damage.tables import RocprofV3Csv

LENS = "data/amd/kineto-rocm-tracelens"
RUN = "h200_runs/{0}.tar.xz!*/trials/{1}/raw/{2}/*{3}"


@dataclass(frozen=True)
class RealFile:
    """One recording.

    Attributes:
        name: short, for tables and for the command line.
        family: who reads and writes it here.
        paths: its files.
    """

    name: str
    family: type[Recording]
    paths: tuple[str, ...]


def _one(name: str, family: type[Recording], *paths: str) -> RealFile:
    return RealFile(name, family, paths)


def _h200(name: str) -> RealFile:
    return _one(f"h200-{name}", Kineto, f"data/h200/torch/{name}.json.gz")


def _nvidia(name: str, path: str) -> RealFile:
    return _one(name, Nsys if path.endswith("sqlite") else Kineto, f"data/nvidia/{path}")


def _run(job: str, trial: str, family: type[Recording], *ranks: str) -> RealFile:
    end = ".pt.trace.json.gz" if family is Kineto else ".sqlite"
    name = f"run-{job}-{'torch' if family is Kineto else 'nsys'}"
    return _one(name, family, *(RUN.format(job, trial, rank, end) for rank in ranks))


FILES = (
    *(_h200(name) for name in ("mlp", "mlp_compile", "matmul_add_64_blocking", "rep1_mlp")),
    *(_h200(name) for name in ("rep2_transformer", "train", "train_blocking", "transformer_optim")),
    _one("h200-ddp", Kineto, "data/h200/ddp/ddp_rank0.json.gz", "data/h200/ddp/ddp_rank1.json.gz"),
    _run("ddp", "001-default-torch-r1", Kineto, "rank0", "rank1"),
    _run("hf", "001-default-torch-r1", Kineto, "rank0"),
    _run("dead", "001-default-torch-r1", Kineto, "rank0"),
    _one("dlrm-8-ranks", Kineto, *(f"data/nvidia/param/dlrm_kineto.tar.gz!*/worker{k}_*" for k in range(8))),
    _nvidia("alexnet", "hta/critical_path_alexnet.json.gz"),
    _nvidia("event-sync", "hta/cuda_event_sync_multi_stream.json.gz"),
    _nvidia("v100-absolute-ns", "hta/ns_resolution_rank-0.pt.trace.json.gz"),
    _nvidia("sampled", "hta/sampled_rank-0.json.gz"),
    _nvidia("torch-1.12", "hta/trace_diff_control.json.gz"),
    _nvidia("torch-1.8", "kineto-tb/resnet50_autograd_api_nw0.pt.trace.json.gz"),
    _nvidia("torch-1.9", "kineto-tb/resnet50_nw0.pt.trace.json.gz"),
    _nvidia("b200-vllm", "tracelens/b200_eager_trace.json.gz"),
    _nvidia("h100-bert", "tracelens/h100_bert-small.json.gz"),
    _nvidia("h100-qwen", "tracelens/h100_qwen1.5.json.gz"),
    _one(
        "mi350-sdk",
        Kineto,
        "data/amd/kineto-rocm-aorta-mi350-rocprofsdk/"
        "smci350-zts-gtu-c6-25_200691.1758927066581847260.pt.trace.json",
    ),
    _one("mi250", Kineto, "data/amd/kineto-rocm-hta-mi250/mi250_minitoy_train_ROCm6_2_kineto.json.gz"),
    _one(
        "mi300-ranks",
        Kineto,
        *(f"data/amd/kineto-rocm-multirank-derived/rank{k}.json.gz" for k in range(2)),
    ),
    _one("mi300-bert", Kineto, f"{LENS}/mi300/gaunernst_bert-small-uncased__1016001.json.gz"),
    _one("mi300-qwen", Kineto, f"{LENS}/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
    _one("mi300-resnet", Kineto, f"{LENS}/mi300/resnet_act_checkpoint.json.gz"),
    _one("mi300-ddp", Kineto, f"{LENS}/mi300_ddp_resnet18_no_pool/train_resnet18.json.gz"),
    _one("mi300-sglang", Kineto, f"{LENS}/inference_sglang_decode/sglang_Qwen3-8B_decode.json.gz"),
    _one("mi300-vllm-graph", Kineto, f"{LENS}/inference_vllm_decode_full/graph_execution.json.gz"),
    _one("mi210", Kineto, f"{LENS}/mi210/gpu_only_trace/gpu_only_trace.json.gz"),
    _one("nsys-h200-train", Nsys, "data/h200/nsys/train.sqlite"),
    _one("nsys-h200-transformer", Nsys, "data/h200/nsys/transformer.sqlite"),
    _run("ddp", "002-default-nsys-r1", Nsys, "rank0"),
    _run("hf", "002-default-nsys-r1", Nsys, "rank0"),
    _nvidia("nsys-2-gpus-cut", "nsys-ai/h100_2gpu_1s.sqlite"),
    _nvidia("nsys-2-gpus", "nsys-ai/mfu_2gpu_before.sqlite"),
    _nvidia("nsys-cloverleaf", "pipit/perlmutter-cloverleaf-cuda.sqlite"),
    _nvidia("nsys-saxpy-2022", "pipit/saxpy-mpi-cuda_nsys_perlmutter0.sqlite"),
    _nvidia("nsys-gtls", "nsys-misc/gtls-report1.sqlite"),
    _nvidia("nsys-4-streams", "nsys-misc/testcuda-report1.sqlite"),
    _one("rocpd-bmm", Rocpd, "data/amd/rocpd-batched-gemm-mi300x/bmm/37ca13315e70/21_results.db"),
    _one("rocpd-ck", Rocpd, "data/amd/rocpd-batched-gemm-mi300x/ck_bmm/37ca13315e70/28_results.db"),
    _one("rpd-matmul", Rpd, "data/amd/rpd/matmul_result.rpd"),
    _one("rocprof-v1", RocprofV1, "data/amd/rocprofv1-rocm-blogs/HIP_trace/results.db"),
    _one(
        "rocprof-v3-csv",
        RocprofV3Csv,
        "data/amd/rocprofv3-csv-strix-halo-llamacpp/decode_hip_api_trace.csv",
        "data/amd/rocprofv3-csv-strix-halo-llamacpp/decode_kernel_trace.csv",
    ),
)
"""The recordings, NVIDIA's kineto first."""


def located(real: RealFile, shared: Path, unpacked: Path) -> list[Path]:
    """Paths of a recording's files; what lies in an archive is unpacked into ``unpacked``."""
    return [path for text in real.paths for path in [_locate(text, shared, unpacked)]]


def _locate(text: str, shared: Path, unpacked: Path) -> Path:
    name, _, member = text.partition("!")
    if not member:
        return shared / name
    home = unpacked / Path(name).name.partition(".")[0]
    if not home.is_dir():
        home.mkdir(parents=True)
        with tarfile.open(shared / name) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # none before Python 3.11.4
            archive.extractall(home)
    found = [path for path in home.rglob("*") if fnmatch.fnmatch(path.relative_to(home).as_posix(), member)]
    if len(found) != 1:
        raise FileNotFoundError(f"{text} is {len(found)} files")
    return found[0]
