"""Every real kineto file: counts, summed durations and each single time equal the raw JSON's."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.traces.trace import Trace
from tests.collectors.torch.rawcount import kind_of, raw_count, to_ns
from tests.conftest import DATA, first, shared_data, unpack

FILES = (
    "amd/kineto-rocm-aorta-mi350-rocprofsdk/smci350-zts-gtu-c6-25_200691.1758927066581847260.pt.trace.json",
    "amd/kineto-rocm-hta-mi250/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "amd/kineto-rocm-tracelens/inference_sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "amd/kineto-rocm-tracelens/inference_vllm_decode_full/graph_execution.json.gz",
    "amd/kineto-rocm-tracelens/mi210/gpu_only_trace/gpu_only_trace.json.gz",
    "amd/kineto-rocm-tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "h200/torch/train.json.gz",
    "h200/torch/transformer_optim.json.gz",
    "nvidia/hta/backward_thread.json",
    "nvidia/hta/cpu_only_rank-34.pt.trace.json.gz",
    "nvidia/hta/critical_path_alexnet.json.gz",
    "nvidia/hta/cupti_profiler_trace.json.gz",
    "nvidia/hta/large_integer_rank-70.pt.trace.json.gz",
    "nvidia/hta/ns_resolution_rank-0.pt.trace.json.gz",
    "nvidia/hta/sampled_rank-0.json.gz",
    "nvidia/hta/triton_example.json.gz",
    "nvidia/kineto-tb/after_fix_trace.json",
    "nvidia/kineto-tb/gpu_metrics_input.json",
    "nvidia/tracelens/b200_eager_trace.json.gz",
    "nvidia/tracelens/h100_bert-small.json.gz",
)
MORE = (  # with PROFRUN_FUZZ=thorough, as all of h200/torch
    "nvidia/hta/cuda_event_sync_multi_stream.json.gz",
    "nvidia/hta/distributed_info_not_found.json.gz",
    "nvidia/hta/rank_non_gpu.json.gz",
    "amd/kineto-rocm-tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "amd/kineto-rocm-tracelens/torch_compile_triton/trace.json.gz",
    "h200/ddp/ddp_rank0.json.gz",
    "amd/kineto-rocm-multirank-derived/rank1.json.gz",
    "amd/kineto-rocm-tracelens/inference_sglang_decode/capture_traces/bs_32_rank0.json.gz",
    "amd/kineto-rocm-tracelens/mi300/resnet_act_checkpoint.json.gz",
    "h200/ddp/ddp_rank1.json.gz",
    "nvidia/kineto-tb/resnet50_nw0_old.pt.trace.json.gz",
    "amd/kineto-rocm-multirank-derived/rank0.json.gz",
    "nvidia/tracelens/h100_qwen1.5.json.gz",
    "amd/kineto-rocm-tracelens/mi300_ddp_resnet18_no_pool/train_resnet18.json.gz",
    "amd/kineto-rocm-tracelens/mi300/google_owlv2-large-patch14-ensemble__1016001.json.gz",
    "nvidia/hta/trace_diff_control.json.gz",
    "nvidia/kineto-tb/resnet50_autograd_api_nw0.pt.trace.json.gz",
    "nvidia/kineto-tb/resnet50_nw0.pt.trace.json.gz",
    "nvidia/tracelens/h100_owlv2.json.gz",
)


def chosen() -> list[str]:
    """Names of the files to check."""
    if os.environ.get("PROFRUN_FUZZ") != "thorough":
        return list(FILES)
    recorded = [f"h200/torch/{path.name}" for path in (DATA / "h200/torch").glob("*.json.gz")]
    counterparts = "amd/kineto-h100-counterparts/h100"
    recorded += [f"{counterparts}/{path.name}" for path in (DATA / counterparts).glob("*.json.gz")]
    return sorted({*FILES, *MORE, *recorded})


def check_file(path: Path, out: Path) -> None:
    """Count, duration sum and multiset of (kind, ns, ns, name) of one file."""
    raw = raw_count(path)
    result = normalize([path], out, repair=False)
    assert result.source == "kineto"
    with Trace(out) as trace:
        base = raw.keys.get("baseTimeNanoseconds") or 0
        epoch = trace.meta["epoch_ns"]
        shift = base - epoch if epoch else 0
        rows = trace.sql("SELECT kind, count(*), sum(dur_ns) FROM slices GROUP BY kind").rows
        assert {kind: count for kind, count, _ in rows} == dict(raw.count)
        assert {kind: int(total) for kind, _, total in rows} == dict(raw.dur_ns)
        expected = sorted(
            (kind, to_ns(event["ts"]) + shift, to_ns(event.get("dur", 0)))
            for event in raw.events
            if (kind := kind_of(event))
        )
        assert sorted(trace.sql("SELECT kind, ts_ns, dur_ns FROM slices").rows) == expected


@pytest.mark.parametrize("name", first(5, chosen()))
def test_every_event_is_there_to_the_nanosecond(name: str, tmp_path: Path) -> None:
    check_file(shared_data(name), tmp_path / "trace")


@pytest.mark.thorough
def test_eight_ranks_of_one_job_become_one_trace(tmp_path: Path) -> None:
    with tarfile.open(shared_data("nvidia/param/dlrm_kineto.tar.gz")) as archive:
        unpack(archive, tmp_path)
    paths = sorted(tmp_path.rglob("*.pt.trace.json"))
    raw = [raw_count(path) for path in paths]
    normalize(paths, tmp_path / "trace", repair=False)
    with Trace(tmp_path / "trace") as trace:
        found = trace.sql(
            "SELECT p.rank, s.kind, count(*), sum(s.dur_ns) FROM slices s JOIN tracks t USING (track) "
            "JOIN processes p USING (process) GROUP BY ALL"
        ).rows
        lanes = trace.sql(
            "SELECT count(*), count(DISTINCT (process, device, native_id, kind)) FROM tracks"
        ).rows
        devices = trace.sql(
            "SELECT p.rank, d.ordinal FROM slices s JOIN tracks t USING (track) "
            "JOIN devices d USING (device) JOIN processes p ON p.process = t.process "
            "GROUP BY ALL ORDER BY ALL"
        ).rows
    assert {(rank, kind): count for rank, kind, count, _ in found} == {
        (rank, kind): count for rank, one in enumerate(raw) for kind, count in one.count.items()
    }
    assert {(rank, kind): int(total) for rank, kind, _, total in found} == {
        (rank, kind): one.dur_ns[kind] for rank, one in enumerate(raw) for kind in one.count
    }
    assert lanes[0][0] == lanes[0][1]
    assert devices == [(rank, rank) for rank in range(8)]
