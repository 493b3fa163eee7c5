"""The docker backend against an engine that only answers: what is prepared, told and asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from profrun.backends.docker import backend as module
from profrun.backends.docker.backend import DockerBackend
from profrun.backends.gpu_choice import GpuSurvey
from profrun.backends.host import HostFacts, RenderNode
from profrun.contract.codec import to_json
from profrun.contract.command import Command, ImageUsed
from profrun.errors import UnavailableError
from profrun.in_job.gpu_use import GpuUse
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from profrun.runner.dry_run import dry_run
from profrun.runner.pipeline import new_run
from profrun.runner.planning import spec_at
from profrun.runner.trial_files import prepare
from profrun.store.runs import Run
from tests.backends.plans import one_trial

NAME = "registry.example/torch:25.12"
DIGEST = "registry.example/torch@sha256:" + "d" * 64
SPEC = f"name: t\nimage: {NAME}\ncommand: python x.py\ncollectors: [none]\nresources: {{gpus: 0}}\n"
CPU = HostFacts()
UNUSED = GpuSurvey((GpuUse(0), GpuUse(1)))
AMD = HostFacts(amd_gpus=(RenderNode("/dev/dri/renderD128", 44),), kfd_gid=44)


class Engine:
    """An engine that has the image, and starts what it is asked to start without running anything."""

    def __init__(self) -> None:
        self.created: list[dict[str, object]] = []
        attrs = {"RepoDigests": [DIGEST], "Architecture": "amd64", "Config": {}, "Size": 1}
        image = SimpleNamespace(id="sha256:" + "1" * 64, attrs=attrs)
        self.images = SimpleNamespace(get=lambda name: image)
        self.api = self
        self.stated: dict[str, object] = {"Version": "24.0.9", "ApiVersion": "1.43", "Arch": "amd64"}
        self.base_url = "http+docker://localhost"

    def version(self) -> dict[str, object]:
        return self.stated

    def info(self) -> dict[str, object]:
        return {"MemoryLimit": True, "CpuCfsQuota": True}

    def get(self, url: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(ok=False)

    def containers(self, **_: object) -> list[object]:
        return []

    def create_host_config(self, **asked: object) -> dict[str, object]:
        return asked

    def create_container(self, **asked: object) -> dict[str, str]:
        self.created.append(asked)
        return {"Id": "c1"}

    def remove_container(self, *_: object, **__: object) -> None:
        return None

    def attach(self, *_: object, **__: object) -> tuple[bytes, ...]:
        return ()

    def wait(self, *_: object, **__: object) -> dict[str, int]:
        return {"StatusCode": 0}

    def start(self, made: str) -> None:
        return None


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The engine that every backend of the test talks to."""
    made = Engine()
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    monkeypatch.setattr(module, "connect", lambda: made)
    return made


def test_the_command_is_written_once_with_the_digest_that_a_dry_run_shows(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(SPEC)
    (tmp_path / "x.py").touch()
    plan = make_plan(load_text(SPEC))
    shown = to_json(dry_run(plan, "docker", tmp_path, tmp_path).trials[0].command)
    backend = DockerBackend(CPU)
    prepared = backend.prepare(plan, plan.trials, Run(tmp_path / "t"), tmp_path)
    run = new_run(tmp_path / "runs", spec_at(tmp_path / "job.yaml"), prepared.plan, backend="docker")
    assert f"image: {DIGEST}" in run.resolved.read_text()
    trial = prepared.plan.trials[0]
    run.bundle.mkdir()
    prepare(run, prepared, trial, backend)
    file = run.trial(trial.id).command
    before = file.stat()
    told = json.loads(file.read_text())
    assert told["image"] == {"reference": NAME, "digest": DIGEST}
    assert {**told, "run": "t-dry-run"} == shown
    backend.submit(prepared, [trial], run)
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert engine.created[0]["image"] == prepared.image_id


def test_what_is_told_and_asked_depends_on_the_prepared_plan_alone(engine: Engine, tmp_path: Path) -> None:
    plan = make_plan(load_text(SPEC))
    known = DockerBackend(CPU)
    prepared = known.prepare(plan, plan.trials, Run(tmp_path / "t"), tmp_path)
    run, told = Run(tmp_path / "t"), Command("000", "t", "t", "default", "none", ("x",), str(tmp_path))
    for backend in (known, DockerBackend(AMD)):
        (request,) = backend.render(prepared, plan.trials, run)
        assert prepared.image_id in request.text
        assert json.loads(json.dumps(request.body)) == request.body
        adapted = backend.adapt(prepared, plan.trials[0], run, told)
        assert adapted == replace(told, image=ImageUsed(NAME, DIGEST))


@pytest.mark.parametrize(("host", "name"), [(CPU, "profrun/cuda:latest"), (AMD, "profrun/rocm:latest")])
def test_a_dry_run_needs_no_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: HostFacts, name: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    plan = make_plan(load_text(SPEC.replace(NAME, "auto")))
    backend = DockerBackend(host)
    prepared = backend.prepare(plan, plan.trials, Run(tmp_path / "t"), tmp_path, ask=False)
    (request,) = backend.render(prepared, plan.trials, Run(tmp_path / "t"))
    assert f"\n  {name} \\\n" in request.text
    assert prepared.image == ImageUsed(name, None)


def test_a_podman_without_gpus_is_refused_before_anything_is_made(engine: Engine, tmp_path: Path) -> None:
    engine.stated |= {"Version": "4.9.3", "Components": [{"Name": "Podman Engine"}]}
    two = DockerBackend(HostFacts(nvidia_gpus=2, nvidia_driver=(570, 1), nvidia_cdi=True), UNUSED)
    with pytest.raises(UnavailableError, match=r"CDI devices from 5.4 on; this is 4.9.3; use Podman 5.4"):
        two.prepare(*one_trial(tmp_path, 1))
    two.prepare(*one_trial(tmp_path, 0))


def test_what_the_engine_does_not_limit_is_said(engine: Engine, tmp_path: Path) -> None:
    engine.info = lambda: {"MemoryLimit": False, "CpuCfsQuota": True}  # type: ignore[method-assign]
    plan = make_plan(load_text(SPEC.replace("gpus: 0", "gpus: 0, memory: 2GiB, cpus: 1")))
    backend = DockerBackend(CPU)
    prepared = backend.prepare(plan, plan.trials, Run(tmp_path / "t"), tmp_path)
    said = "resources.memory: this docker may not limit it, so the trials run without that limit"
    assert said in prepared.left_out
    (request,) = backend.render(prepared, plan.trials, Run(tmp_path / "t"))
    assert "--memory" not in request.text
    assert "--cpus 1" in request.text


def test_a_gpu_is_there_or_is_refused_by_number(tmp_path: Path) -> None:
    two = HostFacts(nvidia_gpus=2, nvidia_driver=(570, 1))
    for asked, there in ((2, two), (0, HostFacts())):
        DockerBackend(there).prepare(*one_trial(tmp_path, asked), ask=False)
    with pytest.raises(UnavailableError, match=r"asks for 3 GPUs, and this machine has 2;"):
        DockerBackend(two).prepare(*one_trial(tmp_path, 3), ask=False)
