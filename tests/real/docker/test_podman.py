"""Trials in rootless Podman, the engine that differs most from Docker: a service of an ordinary user, with
storage of its own. The whole suite against Podman and rootless Docker is run by hand: docs/containers.md."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profrun.images.engine_kind import EngineKind, stated_kind
from tests.conftest import need_tool
from tests.real.docker.conftest import CALLER_GID, CALLER_UID, Cli, own, until
from tests.support.repository import commit

pytestmark = pytest.mark.docker

IMAGE = "profrun/standin:bookworm"  # Podman calls a loaded image localhost/..., and finds it by this name
SEES = """
import json, os, resource, torch
for _ in range(8):
    torch.ones(8).sum()
print(json.dumps({"uid": os.getuid(), "stack": resource.getrlimit(resource.RLIMIT_STACK)[0]}))
"""
WAITS = "import time\nprint('began', flush=True)\ntime.sleep(600)\n"
JOB = f"""
name: sees
command: python3 sees.py
image: {IMAGE}
resources: {{memory: 2GiB, cpus: 1, shm: 64MiB, timeout: 5m}}
"""


def as_caller(*words: str) -> list[str]:
    """A command as the tests' caller, who has no rights."""
    if os.getuid() != 0:
        return list(words)
    ids = (f"--reuid={CALLER_UID}", f"--regid={CALLER_GID}", "--clear-groups")
    return [need_tool("setpriv"), *ids, "--inh-caps=-all", *words]


@pytest.fixture(scope="module")
def podman(engine: Any, standin: str) -> Iterator[str]:
    """Address of a rootless Podman of the caller's that has the stand-in base.

    The caller needs no range in /etc/subuid: all files of the image belong to one user.
    """
    need_tool("podman")
    place = Path(
        tempfile.mkdtemp(prefix="profrun-podman-", dir="/var/tmp")
    )  # on a disk; a short path for sockets
    (place / "containers.conf").write_text(
        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n'
    )
    (place / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{place}/images"\nrunroot = "{place}/run/containers"\n'
        '[storage.options.overlay]\nignore_chown_errors = "true"\n'
    )
    (place / "run").mkdir(mode=0o700)
    (place / "tmp").mkdir()
    for path in (place, *place.iterdir()):
        own(path)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "TMPDIR": str(place / "tmp"),  # Podman 4.3 leaves there what an image was loaded from
        "XDG_RUNTIME_DIR": str(place / "run"),
        "CONTAINERS_CONF": str(place / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(place / "storage.conf"),
    }
    address = f"unix://{place}/run/podman.sock"
    with (place / "log").open("w") as log:
        service = subprocess.Popen(
            as_caller("podman", "system", "service", "--time=0", address),
            cwd=place,
            env=environ,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            until(lambda: (place / "run/podman.sock").exists(), "Podman's socket")
            _copy(engine, standin, address)
            yield address
        finally:
            remove = as_caller("podman", "unshare", "rm", "-rf", str(place / "images"))
            subprocess.run(remove, env=environ, cwd=place, check=True, capture_output=True)
            os.killpg(service.pid, signal.SIGKILL)  # and its other half in the user namespace
            service.wait()
            pause = place / "run/libpod/tmp/pause.pid"  # it keeps the user namespace
            if pause.exists():
                os.kill(int(pause.read_text()), signal.SIGKILL)
            shutil.rmtree(place)
    left = subprocess.run(["pgrep", "-f", str(place)], capture_output=True, text=True)
    assert left.stdout == ""


def _copy(engine: Any, image: str, address: str) -> None:
    """Give an image of one engine to another; nothing of it is kept in between."""
    import docker

    other: Any = docker.DockerClient(address, timeout=600)
    try:
        assert stated_kind(other.version(), other.info()) is EngineKind.ROOTLESS_PODMAN
        other.images.load(engine.images.get(image).save(named=True))
    finally:
        other.close()


@pytest.fixture
def caller(podman: str) -> Cli:
    """The caller with that engine, and a folder that they can reach: Podman mounts it as them."""
    folder = Path(tempfile.mkdtemp(prefix="home-", dir=Path(podman.removeprefix("unix://")).parents[1]))
    own(folder)
    return Cli(folder, env={"DOCKER_HOST": podman}, engine=False)


def test_trials_in_rootless_podman(caller: Cli) -> None:
    """Root inside is the caller outside, the stack is as it was asked for, what is not limited is said, and
    the commit is the one that was seen here: the image has no git."""
    sha = commit(caller.folder, {"sees.py": SEES})
    for path in caller.folder.rglob("*"):
        own(path)
    caller.write("job.yaml", JOB + "collectors: [none, torch]\n")
    done = caller.run("submit", "job.yaml", "--backend", "docker")
    assert done.returncode == 0, done.stderr
    run = caller.only_run()
    ends = [json.loads(path.read_text()) for path in run.glob("trials/*/exit.json")]
    assert [end["state"] for end in ends] == ["finished", "finished"], done.stderr
    for log in run.glob("trials/*/stdout.log"):
        assert json.loads(log.read_text().splitlines()[-1]) == {"uid": 0, "stack": 64 << 20}
    assert len(list(run.glob("trials/*/trace/meta.json"))) == 2
    seen = {"sha": sha, "dirty": False, "why": "git is not in this image", "seen_by": "submit"}
    told = [json.loads(path.read_text()) for path in run.glob("trials/*/provenance.json")]
    assert [one["git"] for one in told] == [seen, seen]
    mine = CALLER_UID if os.getuid() == 0 else os.getuid()
    assert {path.lstat().st_uid for path in run.rglob("*")} == {mine}
    found = json.loads(caller.run("doctor", "--json").stdout)["checks"]
    checks = {row["code"]: row for row in found if row["where"] == "host"}
    assert checks["engine"]["what"].startswith("Podman ")
    assert checks["engine"]["what"].endswith("(rootless)")
    assert "limits.conf" in checks["engine-limits"]["fix"]
    for name in ("memory", "cpus"):  # as the doctor says it, so the run does
        unlimited = name.removesuffix("s") in checks.get("engine-cgroups", {"what": ""})["what"]
        assert unlimited == (f"resources.{name}: this rootless podman may not limit it" in done.stderr)


def _began(caller: Cli) -> bool:
    return any("began" in log.read_text() for log in caller.folder.glob("runs/*/trials/*/stdout.log"))


def _end(running: subprocess.Popen[str]) -> tuple[str, str]:
    """What it printed to its end; a run that does not come to its end is killed."""
    try:
        return running.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return running.communicate()


def test_a_killed_container_of_podman_is_lost_with_its_code(caller: Cli, podman: str) -> None:
    """Podman before 4.6 states 0 to who waits for the removal."""
    import docker

    caller.write("sees.py", WAITS)
    caller.write("job.yaml", JOB + "collectors: [none]\n")
    running = caller.start("submit", "job.yaml", "--backend", "docker")
    other: Any = docker.DockerClient(podman)
    try:
        until(lambda: _began(caller), "the workload")
        (container,) = other.api.containers(filters={"label": "profrun.role"})
        other.api.kill(container["Id"])
    finally:
        _, said = _end(running)
        other.close()
    events = (caller.only_run() / "events.jsonl").read_text().splitlines()
    (ended,) = [one for one in map(json.loads, events) if one["event"] == "finished"]
    assert ended["state"] == "lost", said
    assert "exit code 137" in ended["reason"]
