"""Trials in real containers: as a user who is not root, without network and capabilities, nothing left."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profrun.backends.docker import DockerBackend
from profrun.backends.docker.leftovers import remove
from profrun.backends.docker.request import Container, container
from profrun.backends.docker.sdk_args import create_container, sdk_arguments
from profrun.backends.host import probe_host
from profrun.backends.privileges import PERFMON_API
from profrun.images.engine_kind import EngineKind
from profrun.jobs.load import load_job
from profrun.jobs.model import Job
from profrun.plans.bundle import write_bundle
from profrun.plans.make import make_plan
from profrun.plans.model import Plan, Trial
from profrun.runner.trial_files import prepare
from profrun.store.runs import Run
from tests.conftest import ROOT, missing
from tests.real.docker.conftest import CALLER_GID, CALLER_UID, Cli, own

pytestmark = pytest.mark.docker

# What a trial can see and do, told by the trial itself.
FACTS = """
import json, os, socket, sys
lines = open("/proc/self/status").read().splitlines()
status = dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)
def may_write(path):
    try:
        open(os.path.join(path, "probe-of-writing"), "w").close()
        os.remove(os.path.join(path, "probe-of-writing"))
        return True
    except OSError:
        return False
print(json.dumps({
    "uid": os.getuid(), "gid": os.getgid(), "groups": sorted(os.getgroups()),
    "capabilities": {key: int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
    "no_new_privs": int(status["NoNewPrivs"]),
    "network": sorted(os.listdir("/sys/class/net")), "host": socket.gethostname(),
    "cwd": os.getcwd(),
    "writes": [p for p in (os.getcwd(), os.environ["HOME"], "/data", "/etc") if may_write(p)],
    "data": os.path.exists("/data/thing"),
    "secret": os.environ.get("HF_TOKEN"), "file": os.environ.get("FROM_FILE"),
    "shm": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    "init": open("/proc/1/comm").read().strip(),
    "stack": __import__("resource").getrlimit(__import__("resource").RLIMIT_STACK)[0],
}))
sys.exit(int(os.environ.get("LEAVE_WITH", "0")))
"""
JOB = """
name: facts
command: python facts.py
collectors: [none]
image: cuda
secrets: [HF_TOKEN]
env_file: private.env
mounts: ['data:/data:ro']
resources: {shm: 64MiB, cpus: 1, memory: 2GiB, timeout: 60s}
"""


def documents(run: Path) -> list[dict[str, Any]]:
    """exit.json of every trial."""
    return [json.loads(path.read_text()) for path in sorted(run.glob("trials/*/exit.json"))]


def assert_owned(folder: Path) -> None:
    """Everything below belongs to the caller."""
    uid = CALLER_UID if os.getuid() == 0 else os.getuid()
    others = [path for path in folder.rglob("*") if path.lstat().st_uid != uid]
    assert others == []


@pytest.fixture
def facts(cli: Cli) -> Cli:
    """A job that tells what it sees."""
    cli.write("facts.py", FACTS)
    cli.write("private.env", "# mine\nFROM_FILE=with spaces = and equals\n")
    (cli.folder / "data").mkdir()
    cli.write("data/thing", "")
    cli.env["HF_TOKEN"] = "hf_very_secret"
    cli.write("job.yaml", JOB)
    return cli


def test_what_a_trial_sees(facts: Cli, cuda: str, kind: EngineKind) -> None:
    done = facts.run("submit", "job.yaml", "--backend", "docker", "--json")
    assert done.returncode == 0, done.stderr
    run = facts.only_run()
    (trial,) = (run / "trials").iterdir()
    seen = json.loads((trial / "stdout.log").read_text().splitlines()[-1])
    expected = (CALLER_UID, CALLER_GID) if os.getuid() == 0 else (os.getuid(), os.getgid())
    if kind.rootless:
        expected = (0, 0)  # which is the caller outside, as the owner of the files shows
    assert (seen["uid"], seen["gid"]) == expected
    assert seen["groups"] in ([], [expected[1]])
    assert seen["capabilities"] == dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0)
    assert seen["no_new_privs"] == 1
    assert seen["network"] == ["lo"]
    assert seen["host"] == "profrun"
    assert seen["cwd"] == str(facts.folder)
    assert seen["writes"] == ["/tmp"], "the source and the mounts are read-only"
    assert seen["data"] is True
    assert (seen["secret"], seen["file"]) == ("hf_very_secret", "with spaces = and equals")
    assert seen["shm"] == 64 << 20
    assert seen["init"] in ("docker-init", "tini", "podman-init")
    assert seen["stack"] == 64 << 20
    assert_owned(run)
    kept = [path for path in run.rglob("*") if path.is_file() and b"hf_very_secret" in path.read_bytes()]
    assert kept == [trial / "stdout.log"], "only what the workload itself printed"
    told = json.loads((trial / "command.json").read_text())["image"]
    assert re.fullmatch(r"(.+@)?sha256:[0-9a-f]{64}", told["digest"])
    assert told["digest"] in (run / "resolved.yaml").read_text()
    assert told["digest"] in (trial / "provenance.json").read_text()


ROOT_WRITES = """
import _ctypes, ctypes, os, shutil
import torch
def may_write(path):
    try:
        open(path, "w").close()
        return True
    except OSError as error:
        return error.strerror
print(os.getuid(), may_write("/etc/x"), may_write("/usr/x"), may_write("/tmp/x"))
disk = os.statvfs("/tmp")
print(disk.f_blocks * disk.f_frsize, disk.f_flag & os.ST_NOEXEC)
shutil.copy(_ctypes.__file__, "/tmp/compiled.so")  # as a compiled kernel: written, then loaded
ctypes.CDLL("/tmp/compiled.so")
for _ in range(8):
    torch.ones(8).sum()
"""


@pytest.mark.parametrize(
    ("resources", "written"),
    [("{tmp: 32MiB}", "Read-only file system"), ("{writable_root: true}", "True")],
)
def test_root_writes_only_to_tmp(
    cuda: str, tmp_path: Path, engine: Any, resources: str, written: str
) -> None:
    """A caller who is root is root inside, and the image is read-only for it too; nsys and torch record."""
    if os.getuid() != 0:
        missing("root, whose containers are root's,")
    (tmp_path / "writes.py").write_text(ROOT_WRITES)
    collectors = "[none, torch, nsys]" if "tmp" in resources else "[none]"
    (tmp_path / "job.yaml").write_text(
        f"name: w\ncommand: python writes.py\ncollectors: {collectors}\nimage: cuda\nresources: {resources}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "profrun.cli", "submit", "job.yaml", "--backend", "docker", "--json"],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("SUDO_")},
        capture_output=True,
        text=True,
    )
    (run,) = (tmp_path / "runs").iterdir()
    assert [end["state"] for end in documents(run)] == ["finished"] * collectors.count(",") + ["finished"], (
        done
    )
    for log in run.glob("trials/*/stdout.log"):
        lines = log.read_text().splitlines()
        assert lines[0] == f"0 {written} {written} True"
        size, noexec = lines[1].split()
        assert noexec == "0"
        assert int(size) == 32 << 20 or "tmp" not in resources


def test_under_sudo_the_trial_is_the_user_behind_it(facts: Cli, cuda: str) -> None:
    if os.getuid() != 0:
        missing("root, who alone can be behind sudo,")
    facts.sudo = True
    done = facts.run("submit", "job.yaml", "--backend", "docker")
    assert done.returncode == 0, done.stderr
    (trial,) = (facts.only_run() / "trials").iterdir()
    seen = json.loads((trial / "stdout.log").read_text().splitlines()[-1])
    assert (seen["uid"], seen["gid"]) == (CALLER_UID, CALLER_GID)
    assert_owned(trial / "raw")


def test_exit_codes_are_true(facts: Cli, cuda: str) -> None:
    facts.write("job.yaml", JOB + "env: {LEAVE_WITH: '7'}\n")
    assert facts.run("submit", "job.yaml", "--backend", "docker").returncode == 1
    (document,) = documents(facts.only_run())
    assert (document["state"], document["exit_code"]) == ("failed", 7)


PERF = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
event = ctypes.create_string_buffer(128)
struct.pack_into("IIQ", event, 0, 1, 128, 0)  # PERF_TYPE_SOFTWARE, size, PERF_COUNT_SW_CPU_CLOCK
caps = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
print(os.getuid(), os.getgid(), *caps, libc.syscall(298, event, 0, -1, -1, 0) >= 0)
"""


@pytest.mark.parametrize("sample", ["none", "process-tree"])
def test_one_capability_reaches_a_user_who_is_not_root(
    engine: Any, cuda: str, tmp_path: Path, sample: str, kind: EngineKind
) -> None:
    """CPU samples need one capability. Engines give it to root only; the trial is not root, and has it.

    nsys itself is not run here: 2022.4 hangs at its end when it samples a machine without hardware counters.
    """
    if kind.rootless:
        pytest.skip(
            "a capability of a rootless container counts in its user namespace only: docs/containers.md"
        )
    facts = dataclasses.replace(probe_host(), uid=CALLER_UID, gid=CALLER_GID, api=engine_api(engine))
    spec = Job(name="j", command="x", image=cuda)
    trial = Trial(0, "t", "a", {}, "nsys", False, 1, ("x",), options={"nsys": {"sample": sample}})
    (tmp_path / "run/bundle").mkdir(parents=True)
    (tmp_path / "run/trials/t").mkdir(parents=True)
    asked = container(Plan(spec, (trial,)), trial, Run(tmp_path / "run"), tmp_path, facts, cuda)
    words = asked.argv[: asked.argv.index("python3")]
    said = run_container(engine, dataclasses.replace(asked, argv=(*words, "python3", "-c", PERF)))
    mask = (
        f"{1 << (38 if facts.api and facts.api >= PERFMON_API else 21):016x}"
        if sample != "none"
        else "0" * 16
    )
    assert said.split() == [str(CALLER_UID), str(CALLER_GID), *[mask] * 5, str(sample != "none")]


def engine_api(engine: Any) -> tuple[int, ...]:
    """Version of the engine's API."""
    return tuple(int(part) for part in engine.api.api_version.split("."))


def run_container(engine: Any, what: Container) -> str:
    """Run a container to its end; what it printed."""
    asked = sdk_arguments(what)
    asked["host_config"]["auto_remove"] = False
    made = create_container(engine, asked, {})
    try:
        engine.api.start(made)
        engine.api.wait(made)
        return str(engine.api.logs(made).decode())
    finally:
        remove(engine, made)


def test_the_dry_runs_line_pasted_into_a_shell_does_the_same(facts: Cli, cuda: str, tmp_path: Path) -> None:
    dry = facts.run("submit", "job.yaml", "--backend", "docker", "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    document = json.loads(dry.stdout)
    (request,) = document["requests"]
    # A dry run writes nothing: its folder is made as `submit` makes one.
    _prepare(facts, Path(document["path"]))
    pasted = _paste(facts, request["text"])
    assert pasted.returncode == 0, pasted.stderr
    assert facts.run("submit", "job.yaml", "--backend", "docker").returncode == 0
    (real,) = [path for path in (facts.folder / "runs").iterdir() if not path.name.endswith("-dry-run")]
    by_hand, by_us = Path(document["path"]), real
    (seen_by_hand,) = by_hand.glob("trials/*/stdout.log")
    (seen_by_us,) = by_us.glob("trials/*/stdout.log")
    assert json.loads(seen_by_hand.read_text()) == json.loads(seen_by_us.read_text())
    ((first,), (second,)) = documents(by_hand), documents(by_us)
    for key in ("state", "exit_code", "collector", "argv", "warnings"):
        assert first[key] == second[key]
    assert_owned(by_hand)


def _prepare(cli: Cli, folder: Path) -> None:
    """The run folder of a dry run, the caller's."""
    here = Path.cwd()
    os.chdir(cli.folder)
    try:
        plan = make_plan(load_job(cli.folder / "job.yaml"))
        run = Run(folder)
        folder.mkdir(parents=True)
        write_bundle(run.bundle)
        backend = DockerBackend()
        prepared = backend.prepare(plan, plan.trials, run, cli.folder, ask=False)
        prepare(run, prepared, plan.trials[0], backend)
    finally:
        os.chdir(here)
    for path in (folder.parent, folder, *folder.rglob("*")):
        own(path)


def _paste(cli: Cli, line: str) -> subprocess.CompletedProcess[str]:
    """Into a shell of the caller's: the same user, groups and environment as profrun had."""
    prefix = cli.argv()[: -len(Cli(cli.folder).argv()) or None] if os.getuid() else cli.argv()[:-3]
    return subprocess.run(
        [*prefix, "sh", "-c", line],
        cwd=cli.folder,
        env=cli.environ(),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_repositorys_own_job(cli: Cli, cuda: str) -> None:
    """torch and nsys inside containers; `image: auto` is cuda where there is no GPU."""
    shutil.copytree(ROOT / "jobs", cli.folder / "jobs", ignore=shutil.ignore_patterns("*.py[co]"))
    done = cli.run(
        *("submit", "jobs/transformer.yaml", "--backend", "docker", "--json"),
        *("--set", "collectors=[torch, nsys]", "--set", "repeats=1", "--set", "launch_blocking=off"),
    )
    run = cli.only_run()
    assert [item["state"] for item in documents(run)] == ["finished"] * 4, done.stderr
    assert len(list(run.glob("trials/*-torch-*/raw/rank0/*.pt.trace.json.gz"))) == 2
    assert len(list(run.glob("trials/*-nsys-*/raw/rank0/*.nsys-rep"))) == 2
    assert len(list(run.glob("trials/*-nsys-*/raw/rank0/*.sqlite"))) == 2
    assert len(list(run.glob("trials/*/trace/meta.json"))) == 4
    assert_owned(run)
    ranges = [item["ranges_emitted"] for item in documents(run) if item["collector"] == "nsys"]
    assert all(count and count > 0 for count in ranges)


def test_shlex_reads_the_line_as_one_command(facts: Cli, cuda: str) -> None:
    dry = facts.run("submit", "job.yaml", "--backend", "docker", "--dry-run", "--json")
    words = shlex.split(json.loads(dry.stdout)["requests"][0]["text"].replace("\\\n", " "))
    assert words[:2] == ["docker", "run"]
    assert "hf_very_secret" not in dry.stdout
