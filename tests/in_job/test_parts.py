"""The wrapper's parts as pure functions: redaction, vendors, ranks, artefacts, findings, the window."""

from __future__ import annotations

import gzip
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.codec import to_json
from profrun.contract.recording import Rank
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest
from profrun.in_job import (
    artefacts,
    launch,
    outcome,
    preflight,
    process_rank,
    proctree,
    redact,
    tools,
    vendor,
)
from profrun.in_job.config import HookConfig
from profrun.in_job.ranks import merge
from profrun.in_job.supervise import Outcome


def test_secrets_by_name_by_form_and_in_urls() -> None:
    environ = {
        "HF_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "MY_PASSWORD": "x",
        "NAMED": "x",
        "PWD": "/home/me",
        "TOKENIZERS_PARALLELISM": "false",
        "INDEX": "https://user:pw@host/simple",
        "PLAIN": "ghp_0123456789abcdef0123456789",
    }
    assert redact.environment(environ, ["NAMED"]) == {
        "AWS_SECRET_ACCESS_KEY": "<redacted>",
        "HF_TOKEN": "<redacted>",
        "INDEX": "https://<redacted>@host/simple",
        "MY_PASSWORD": "<redacted>",
        "NAMED": "<redacted>",
        "PLAIN": "<redacted>",
        "PWD": "/home/me",
        "TOKENIZERS_PARALLELISM": "false",
    }
    assert redact.arguments(["train", "--api-key", "k", "--token=t", "WANDB_API_KEY=w", "--lr", "1"]) == [
        "train",
        "--api-key",
        "<redacted>",
        "--token=<redacted>",
        "WANDB_API_KEY=<redacted>",
        "--lr",
        "1",
    ]


@given(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.from_regex(r"[A-Za-z0-9]{6,20}", fullmatch=True))
def test_no_password_of_a_url_survives(user: str, password: str) -> None:
    cleaned = redact.text(f"see postgres://{user}:{password}@h/db and more")
    assert f":{password}@" not in cleaned
    assert cleaned.endswith("@h/db and more")


def fake_root(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


NODES = "sys/class/kfd/kfd/topology/nodes"


def test_vendors_are_found_by_driver_and_device(tmp_path: Path) -> None:
    nvidia = {"proc/driver/nvidia/version": "NVRM", "dev/nvidia0": ""}
    amd = {
        "dev/kfd": "",
        f"{NODES}/0/properties": "simd_count 0\n",
        f"{NODES}/1/properties": "simd_count 1216\n",
    }
    assert vendor.detect(fake_root(tmp_path / "n", nvidia))[0] == "nvidia"
    assert vendor.detect(fake_root(tmp_path / "a", amd))[0] == "amd"
    assert (
        vendor.detect(
            fake_root(tmp_path / "cpu", {"dev/kfd": "", f"{NODES}/0/properties": "simd_count 0\n"})
        )[0]
        == "none"
    )
    assert [gpu["node"] for gpu in vendor.amd_gpus(tmp_path / "a")] == ["1"]


@pytest.mark.parametrize(
    ("gpu", "blocking", "expected"),
    [
        ("nvidia", True, {"CUDA_LAUNCH_BLOCKING": "1"}),
        ("amd", True, {"HIP_LAUNCH_BLOCKING": "1", "AMD_SERIALIZE_KERNEL": "3"}),
        ("nvidia", False, {}),
        ("amd", False, {}),
    ],
)
def test_blocking_by_vendor_leaves_nothing_of_the_other(
    gpu: str, blocking: bool, expected: dict[str, str]
) -> None:
    env = {"CUDA_LAUNCH_BLOCKING": "0", "HIP_LAUNCH_BLOCKING": "0", "AMD_SERIALIZE_KERNEL": "0"}
    vendor.blocking_env(env, gpu, blocking=blocking)
    assert env == expected


def test_one_visibility_variable_is_kept() -> None:
    slurm = {"CUDA_VISIBLE_DEVICES": "2", "ROCR_VISIBLE_DEVICES": "2", "GPU_DEVICE_ORDINAL": "2"}
    amd, nvidia, only = dict(slurm), dict(slurm), {"HIP_VISIBLE_DEVICES": "1"}
    assert len(vendor.visible_env(amd, "amd")) == len(vendor.visible_env(nvidia, "nvidia")) == 2
    vendor.visible_env(only, "amd")
    assert (amd, nvidia) == ({"ROCR_VISIBLE_DEVICES": "2"}, {"CUDA_VISIBLE_DEVICES": "2"})
    assert only == {"HIP_VISIBLE_DEVICES": "1"}


def test_nvidia_smi_rows_and_throttle_bits() -> None:
    names = ["index", "name", "power.draw", "temperature.gpu", "clocks_throttle_reasons.active"]
    row = vendor._gpu(names, "0, NVIDIA H200, 71.25, [N/A], 0x0000000000000024")
    assert row == {
        "index": 0,
        "name": "NVIDIA H200",
        "power_draw": 71.25,
        "temperature_gpu": None,
        "clocks_throttle_reasons_active": "0x0000000000000024",
        "throttled_by": ["sw_power_cap", "sw_thermal_slowdown"],
    }


def test_slurm_ranks_reach_torch() -> None:
    env = {
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
        "SLURM_NTASKS": "4",
        "SLURM_JOB_ID": "77",
        "SLURM_JOB_NODELIST": "gpu[007-010,12]",
    }
    launch.slurm_ranks(env)
    assert {
        name: env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    } == {
        "RANK": "3",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "MASTER_ADDR": "gpu007",
        "MASTER_PORT": "20077",
    }
    assert process_rank.from_environ(env) == Rank(3, 1, 4)
    assert [launch.first_host(nodes) for nodes in ("n1", "n[3-5],m", "a,b", "")] == [
        "n1",
        "n3",
        "a",
        "127.0.0.1",
    ]


def test_torchruns_rank_wins_over_slurms() -> None:
    assert process_rank.from_environ({"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "1"}) == Rank(5, 0, 8)
    assert process_rank.from_environ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}).rank == 2
    assert process_rank.from_environ({}) == Rank()


def test_artefacts_are_judged_by_their_own_end(tmp_path: Path) -> None:
    raw = tmp_path / "raw/rank0"
    raw.mkdir(parents=True)
    packed = gzip.compress(b'{"traceEvents": []}' * 1000)
    (raw / "whole.json.gz").write_bytes(packed)
    (raw / "cut.json.gz").write_bytes(packed[:-20])
    (raw / "cut.json").write_text('{"a": [1, 2')
    (raw / "whole.csv").write_text("a,b\n1,2\n")
    (raw / "cut.csv").write_text("a,b\n1,")
    (raw / "empty.nsys-rep").touch()
    (raw / "x.partial").write_text("half")
    connection = sqlite3.connect(raw / "whole.sqlite")
    connection.execute(
        "CREATE TABLE t AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 5000) "
        "SELECT x FROM n"
    )
    connection.commit()
    connection.close()
    content = (raw / "whole.sqlite").read_bytes()
    (raw / "cut.sqlite").write_bytes(content[: len(content) // 2])
    (raw / "zeroed.sqlite").write_bytes(b"\0" * 4096)
    rows = artefacts.collect(tmp_path, 0, ("*.csv", "*.ncu-rep"))
    states = {row["path"].removeprefix("raw/rank0/"): row["state"] for row in rows}
    assert {name for name, state in states.items() if state == "whole"} == {
        "whole.json.gz",
        "whole.csv",
        "whole.sqlite",
    }
    assert {name for name, state in states.items() if state == "missing"} == {"*.ncu-rep"}
    assert len([state for state in states.values() if state == "truncated"]) == 7


def judge(result: Outcome, **more: Any) -> outcome.Verdict:
    return outcome.judge(result, outcome.Facts(limit=10.0, steps=5, **more), [])


def test_verdicts() -> None:
    assert judge(Outcome(status=0)).state == "finished"
    assert judge(Outcome(status=3 << 8)).exit_code == 3
    assert judge(Outcome(status=signal.SIGKILL)).reason == (
        "the program was killed (SIGKILL): out of memory is the usual reason (dmesg, container limits)"
    )
    under_nsys = judge(Outcome(status=139 << 8), tool="nsys")
    assert (under_nsys.exit_code, under_nsys.signal) == (None, signal.SIGSEGV)
    assert judge(Outcome(status=139 << 8)).exit_code == 139, "a shell's own 139 stays what it is"
    missing = [{"path": "raw/rank0/*.nsys-rep", "state": "missing", "bytes": 0}]
    lost = judge(Outcome(status=0), tool="nsys", artefacts=missing, tool_says="no window")
    assert (lost.state, lost.reason, lost.wrapper_code) == ("failed", "no window", 1)
    limit = judge(Outcome(status=signal.SIGTERM, stopped_by="limit"))
    assert (limit.state, limit.wrapper_code) == ("timeout", 124)
    assert judge(Outcome(status=0, stopped_by="SIGTERM"), cancelled=True).state == "cancelled"
    assert judge(Outcome(status=0, stopped_by="SIGURG")).state == "timeout"


def test_the_worse_rank_decides() -> None:
    own: dict[str, Any] = {"state": "finished", "exit_code": 0, "signal": None, "reason": None}
    own |= {"stopped_by": None, "artefacts": [1], "ranges_emitted": 2, "warnings": ["a"]}
    other = own | {"state": "failed", "exit_code": 9, "reason": "boom", "rank": 3, "warnings": ["a", "b"]}
    other |= {"stopped_by": "SIGTERM", "artefacts": [2], "ranges_emitted": 5}
    merge(own, other)
    assert own == {
        "state": "failed",
        "exit_code": 9,
        "signal": None,
        "stopped_by": "SIGTERM",
        "reason": "rank 3: boom",
        "artefacts": [1, 2],
        "ranges_emitted": 7,
        "warnings": ["a", "rank 3: b"],
    }


def findings(tmp_path: Path, collector: str, gpu: str, files: dict[str, str], **options: Any) -> list[str]:
    root = fake_root(tmp_path, files)
    found = preflight.check(collector, gpu, options, Path("/"), root)
    return [f"{finding.level}: {finding.what}" for finding in found if finding.collector is not None]


RESTRICTED = {
    "proc/driver/nvidia/params": "RmProfilingAdminOnly: 1\n",
    "proc/self/status": "CapEff:\t0000000000000000\n",
}


def test_restricted_counters_stop_ncu_and_degrade_nsys(tmp_path: Path) -> None:
    assert findings(tmp_path, "ncu", "nvidia", RESTRICTED) == [
        "error: GPU performance counters may not be read"
    ]
    assert findings(tmp_path, "nsys", "nvidia", RESTRICTED) == []
    assert findings(tmp_path, "nsys", "nvidia", RESTRICTED, gpu_metrics="all") == [
        "degraded: GPU performance counters may not be read"
    ]


@pytest.mark.parametrize(
    ("driver", "allowed"), [("550.54.14", False), ("565.57.01", True), ("580.159.04", True)]
)
def test_perfmon_is_enough_for_counters_from_driver_565(tmp_path: Path, driver: str, allowed: bool) -> None:
    files = {
        **RESTRICTED,
        "proc/self/status": f"CapEff:\t{1 << 38:016x}\n",
        "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Sun\n",
    }
    assert (findings(tmp_path, "ncu", "nvidia", files) == []) is allowed
    admin = RESTRICTED | {"proc/self/status": f"CapEff:\t{1 << 21:016x}\n"}
    assert findings(tmp_path, "ncu", "nvidia", admin) == []


def test_cpu_sampling_is_left_out_where_the_kernel_forbids_it(tmp_path: Path) -> None:
    files = {"proc/sys/kernel/perf_event_paranoid": "4\n", "proc/self/status": "CapEff:\t0\n"}
    assert findings(tmp_path, "nsys", "none", files) == []
    found = preflight.check("nsys", "none", {"sample": "process-tree"}, Path("/"), tmp_path)
    assert preflight.degrade("nsys", {"sample": "process-tree", "trace": ["nvtx"]}, found) == {
        "trace": ["nvtx"]
    }


def test_amd_needs_its_device(tmp_path: Path) -> None:
    assert findings(tmp_path, "rocprof", "none", {}) == ["error: /dev/kfd is not here"]
    found = preflight.check("rocprof", "amd", {}, Path("/"), tmp_path, stated=True)
    assert [row.level for row in found if row.collector] == ["degraded"], "a stated vendor is believed"
    assert findings(tmp_path, "rocprof", "amd", {"dev/kfd": ""}) == []


@pytest.mark.parametrize(
    ("running", "argv", "same"),
    [
        (["python", "t.py", "-x"], ["python", "t.py", "-x"], True),
        (["/usr/bin/python3", "/opt/bin/tool", "-x"], ["tool", "-x"], True),
        (["/usr/bin/env", "python3", "/opt/bin/tool", "-x"], ["tool", "-x"], True),
        (["nsys", "profile", "--output=x", "python", "t.py", "-x"], ["python", "t.py", "-x"], False),
        (["python", "worker.py"], ["python", "t.py"], False),
        ([], ["python"], False),
    ],
)
def test_the_users_process_is_told_from_the_profiler(running: list[str], argv: list[str], same: bool) -> None:
    assert proctree.is_command(running, argv) is same


def test_the_schedule_labels_steps_as_torch_does() -> None:
    from torch.profiler import ProfilerAction, schedule

    ours = {
        "wait": {ProfilerAction.NONE},
        "outside": {ProfilerAction.NONE},
        "warmup": {ProfilerAction.WARMUP},
    }
    ours["active"] = {ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE}
    for wait, warmup, active, repeat, skip in ((1, 1, 3, 1, 0), (0, 1, 2, 2, 3), (2, 3, 1, 3, 1)):
        theirs = schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip)
        mine = Schedule(wait, warmup, active, repeat, skip)
        for step in range(30):
            assert theirs(step) in ours[mine.part(step)], (mine, step)
            saved = theirs(step) == ProfilerAction.RECORD_AND_SAVE
            assert saved == (mine.part(step) == "active" and mine.ends_cycle(step))


def test_versions_as_tools_state_them() -> None:
    assert tools.parse("NVIDIA Nsight Systems version 2024.2.3.38-242334140272v0") == (2024, 2, 3)
    assert tools.parse("Version 2025.3.1.0 (build 36398880)") == (2025, 3, 1)
    assert tools.parse("none") is None
    assert tools.resolve("timeline", "amd") == ("rocprof", None)
    assert tools.resolve("counters", "nvidia") == ("ncu", None)
    assert "no counters" in str(tools.resolve("counters", "none")[1])


def test_torch_and_none_wrap_nothing() -> None:
    request = WrapRequest(("python", "t.py"), Schedule(), {}, "/out", "", steps_found=True)
    torch = tools.wrap_module("torch").wrap(request)
    none = tools.wrap_module("none").wrap(request)
    assert torch.argv == none.argv == request.argv
    assert (torch.hook, torch.emitter, torch.expected) == (
        "in_process",
        "in_process",
        ("*.pt.trace.json.gz",),
    )
    assert (none.hook, none.emitter, none.expected) == ("none", None, ())


def test_orders_survive_the_way_through_json(tmp_path: Path) -> None:
    import json

    orders = HookConfig(folder="/t", hook="cuda", schedule=Schedule(1, 2, 3, 4, 5), tool_version=(2024, 2))
    path = tmp_path / "c.json"
    path.write_text(json.dumps(to_json(orders)))
    assert HookConfig.load(str(path)) == orders
