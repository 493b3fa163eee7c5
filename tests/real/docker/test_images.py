"""Building on a real engine: what rebuilds, what does not, and how failures read."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profrun.errors import FailedError, ProfrunError, UnavailableError
from profrun.images.build import Built, build
from profrun.images.engine_kind import EngineKind
from profrun.images.inspect import inspect
from profrun.images.pins import registry_digest
from profrun.images.recipe import Recipe, recipe
from profrun.images.resolve import find, resolve
from tests.conftest import ROOT, need_tool
from tests.real.docker.conftest import Cli, import_empty, until

pytestmark = pytest.mark.docker

SMALL = Recipe("cuda", "", {"NSYS_VERSION": ""}, b"ARG BASE\nFROM ${BASE}\nARG NSYS_VERSION\n")
BASE = "profrun/test-base:1"


def make(engine: Any, what: Recipe, **options: Any) -> tuple[Built, list[str]]:
    """Build to the end."""
    lines = []
    steps = build(engine, what, **{"pins": {}, **options})
    while True:
        try:
            lines.append(next(steps))
        except StopIteration as end:
            return end.value, lines


@pytest.fixture
def base(engine: Any, standin: str, request: pytest.FixtureRequest) -> Any:
    """A base under a tag that can be moved; the images made on it are removed afterwards."""
    latest = find(engine, "profrun/cuda:latest")
    engine.images.get(standin).tag("profrun/test-base", "1")
    yield lambda line: _move(engine, standin, line)
    for image in engine.images.list(filters={"label": f"org.opencontainers.image.base.name={BASE}"}):
        engine.images.remove(image.id, force=True)
    engine.images.remove(BASE, force=True)
    if latest:  # the small builds took the name
        engine.images.get(latest.id).tag("profrun/cuda", "latest")


def _move(engine: Any, standin: str, line: str) -> None:
    """Make the tag mean another image, as a registry does when a tag is pushed again."""
    engine.images.build(fileobj=io.BytesIO(f"FROM {standin}\n{line}\n".encode()), tag=BASE, rm=True)


def test_what_rebuilds_and_what_does_not(engine: Any, base: Any) -> None:
    small = dataclasses.replace(SMALL, base=BASE)
    first, _ = make(engine, small)
    again, lines = make(engine, small)
    assert (first.cached, again.cached, again.image.id) == (False, True, first.image.id)
    assert any("nothing has changed" in line for line in lines)

    byte, _ = make(engine, dataclasses.replace(small, dockerfile=small.dockerfile + b"#"))
    assert not byte.cached
    assert byte.key != first.key

    base("LABEL moved=1")
    moved, _ = make(engine, small)
    assert (moved.cached, moved.key != first.key) == (False, True)
    assert moved.base.id != first.base.id

    base("LABEL moved=1")  # the same content again
    assert make(engine, small)[0].cached

    forced, _ = make(engine, small, force=True)
    assert (forced.cached, forced.key) == (False, moved.key)


def test_a_moved_base_is_not_run_by_its_old_build(engine: Any, base: Any) -> None:
    """A tag that was reused is never trusted: not the base's, not ours."""
    real = dataclasses.replace(recipe("cuda", BASE, {"NSYS_VERSION": ""}), base=BASE)
    make(engine, real)
    assert resolve(engine, "cuda", "none", pins={}).labels["profrun.kind"] == "cuda"
    base("LABEL moved=2")
    with pytest.raises(UnavailableError, match=f"is stale: its base {BASE} has changed since it was built"):
        resolve(engine, "cuda", "none", pins={})


def test_labels_say_what_was_measured(engine: Any, cuda: str) -> None:
    image = find(engine, cuda)
    assert image is not None
    contents = inspect(engine, image)
    assert contents.tools["nsys"].version == image.labels["profrun.nsys.version"]
    assert contents.nvtx == image.labels["profrun.nvtx.version"] == "0.2.11"
    assert contents.torch is not None
    assert contents.torch.version == image.labels["profrun.torch.version"]
    assert image.user == "1000:1000"
    assert re.fullmatch(r"(.+@)?sha256:[0-9a-f]{64}", image.labels["org.opencontainers.image.base.digest"])


def test_the_same_build_twice_by_the_command_line(cli: Cli, engine: Any, cuda: str, standin: str) -> None:
    done = cli.run("images", "build", "cuda", "--base", standin, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cached"] is True
    shown = cli.run("images", "inspect", "cuda", "--json")
    assert json.loads(shown.stdout)["profilers"]["nsys"]["version"]


def test_rocm_on_a_base_without_rocm(engine: Any, standin: str) -> None:
    """Debian has no rocprofiler-sdk: the step says so; without the profiler the same Dockerfile builds."""
    with pytest.raises(FailedError) as caught:
        make(engine, recipe("rocm", standin))
    assert re.search("failed at (Step|STEP)", str(caught.value))
    assert "rocprofiler-sdk is not in this image's apt sources" in str(caught.value)
    built, _ = make(engine, recipe("rocm", standin, {"ROCPROFILER_PACKAGE": ""}))
    assert built.image.user == "1000:1000"
    engine.images.remove(built.image.id, force=True)


def test_a_step_that_fails(cli: Cli, engine: Any, base: Any) -> None:
    base("LABEL whose=mine")  # other suites run containers of the stand-in at the same time
    broken = dataclasses.replace(
        SMALL, base=BASE, dockerfile=SMALL.dockerfile + b"RUN echo why >&2; exit 3\n"
    )
    with pytest.raises(FailedError) as caught:
        make(engine, broken)
    assert re.search("failed at (Step 4|STEP 3)", str(caught.value))  # Podman does not count ARG BASE
    assert "its last line: why" in str(caught.value)
    assert not engine.containers.list(all=True, filters={"status": "exited", "ancestor": BASE})


def test_a_disk_that_is_full(engine: Any, base: Any) -> None:
    """A step that finds no room; here the 64 MiB of the build container's /dev/shm."""
    step = b"RUN dd if=/dev/zero of=/dev/shm/big bs=1M count=100\n"
    with pytest.raises(UnavailableError, match="disk is full"):
        make(engine, dataclasses.replace(SMALL, base=BASE, dockerfile=SMALL.dockerfile + step))


@pytest.mark.parametrize("name", ["profrun/no-such-base:1", "localhost:1/none:1", "Not A Reference"])
def test_a_base_that_cannot_be_had(engine: Any, name: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        make(engine, dataclasses.replace(SMALL, base=name))
    assert "\n" not in str(caught.value)


def test_an_image_without_python_or_profiler(engine: Any, standin: str) -> None:
    import_empty(engine, "profrun/test-empty:1")
    try:
        with pytest.raises(UnavailableError, match="the image has no python3"):
            make(engine, dataclasses.replace(SMALL, base="profrun/test-empty:1"))
        with pytest.raises(FailedError, match="has no working nsys inside"):
            make(engine, dataclasses.replace(SMALL, base=standin, args={"NSYS_VERSION": "1"}))
    finally:
        engine.images.remove("profrun/test-empty:1", force=True)
        for image in engine.images.list(filters={"dangling": True, "label": "profrun.kind=cuda"}):
            engine.images.remove(image.id, force=True)


def test_an_image_for_another_processor(engine: Any, standin: str) -> None:
    """The configuration of a saved image, with another architecture in it, loaded again."""
    name = "profrun/test-foreign:1"
    import_empty(engine, name)
    saved = io.BytesIO(b"".join(engine.images.get(name).save(named=True)))
    engine.images.remove(name, force=True)
    changed = io.BytesIO()
    with tarfile.open(fileobj=saved) as source, tarfile.open(fileobj=changed, mode="w") as target:
        for info in source:
            data = source.extractfile(info).read() if info.isfile() else b""  # type: ignore[union-attr]
            if info.isfile() and b'"architecture":"amd64"' in data:
                data = data.replace(b'"architecture":"amd64"', b'"architecture":"s390x"')
                info.size = len(data)
            target.addfile(info, io.BytesIO(data) if info.isfile() else None)
    engine.images.load(changed.getvalue())
    try:
        with pytest.raises(ProfrunError, match="is made for s390x, and this engine runs on"):
            resolve(engine, name, "none", pins={})
    finally:
        engine.images.remove(name, force=True)


def test_a_build_by_hand_sends_only_what_is_copied(standin: str) -> None:
    """The engine is given a few kilobytes, not the repository; the build stops before its first step."""
    build = [need_tool("docker"), "build", "-f", "Dockerfile.cuda", "--build-arg", f"BASE={standin}"]
    sent = subprocess.run(
        [*build, "--target", "not-there", "."],
        cwd=ROOT,
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
    )
    found = re.search(r"Sending build context to Docker daemon\s+([\d.]+)([kM]?B)", sent.stdout + sent.stderr)
    assert found, sent
    assert found.group(2) in ("B", "kB"), found.group()
    assert "not-there" in sent.stderr, "the engine had all of it, and found the Dockerfile in it"


def test_a_pinned_base_stays_where_its_tag_moves(
    engine: Any, base: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a registry the pin is the image's id."""
    small = dataclasses.replace(SMALL, base=BASE)
    monkeypatch.setattr("profrun.images.resolve.recipe", lambda kind, name, args: small)
    pin = engine.images.get(BASE).id
    first, lines = make(engine, small, pins={BASE: pin})
    assert f"base {BASE} is {pin} (pinned)" in lines
    base("ENV MOVED=1")
    again, lines = make(engine, small, pins={BASE: pin})
    assert (again.cached, again.image.id) == (True, first.image.id)
    assert any(f"{BASE} has moved: it is pinned to {pin[:19]}" in line for line in lines)
    assert resolve(engine, again.image.reference, "none", pins={BASE: pin}).id == first.image.id, "not stale"
    with pytest.raises(UnavailableError, match="is stale"):
        resolve(engine, again.image.reference, "none", pins={})
    unpinned, _ = make(engine, small)
    assert not unpinned.cached


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """Address of a registry on this machine, which answers by http.

    Docker takes that from this machine. Podman takes it where its registries.conf calls the address insecure:
    PROFRUN_TEST_REGISTRY_PORT is the port that stands there.
    """
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", int(os.environ.get("PROFRUN_TEST_REGISTRY_PORT", "0"))))
        where = f"127.0.0.1:{free.getsockname()[1]}"
    config = tmp_path / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/images}}}}\n"
        f"http: {{addr: {where}}}\n"
    )
    server = subprocess.Popen(
        [need_tool("docker-registry"), "serve", str(config)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: _answers(where), "the registry")
        yield where
    finally:
        server.terminate()
        server.wait(10)


def _answers(where: str) -> bool:
    host, _, port = where.partition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False


def test_the_command_line_pins_what_a_registry_has(
    engine: Any, cli: Cli, registry: str, kind: EngineKind
) -> None:
    if kind is EngineKind.ROOTLESS_DOCKER:
        pytest.skip("a rootless Docker has a loopback of its own, and no way to this machine's registry")
    name = f"{registry}/small:1"

    def push(line: str) -> str:
        raw = io.BytesIO(f"FROM scratch\nLABEL made={line}\nCOPY Dockerfile /\n".encode())
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            info = tarfile.TarInfo("Dockerfile")
            info.size = len(raw.getvalue())
            tar.addfile(info, raw)
        archive.seek(0)
        engine.images.build(fileobj=archive, custom_context=True, tag=name, rm=True)
        said = engine.images.push(name)
        assert "digest: sha256:" in said, said
        digest: str = f"{registry}/small@" + re.findall(r"digest: (sha256:\w+)", said)[-1]
        return digest

    try:
        first = push("one")
        if kind.podman:
            refused = cli.run("images", "pin", "--registry", name)
            assert (refused.returncode, "podman pull" in refused.stderr) == (69, True), refused.stderr
            return
        done = cli.run("images", "pin", name)
        assert (done.returncode, done.stdout) == (0, f"{name} is pinned to {first}\n"), done.stderr
        assert f"{name} is pinned to {first}" in cli.run("images", "list").stdout
        second = push("two")
        assert registry_digest(engine, name) == second
        assert resolve(engine, name, "none", pins={name: first}).digest == first
        engine.images.remove(first, force=True)
        assert resolve(engine, name, "none", pins={name: first}).digest == first, "pulled by its digest"
        again = cli.run("images", "pin", "--registry", name)
        assert again.stdout == f"{name} is pinned to {second}\n  it has moved: it was pinned to {first}\n"
        assert cli.run("images", "unpin", name).stdout == f"{name} is no longer pinned\n"
        assert cli.run("images", "unpin", name).returncode == 64
        assert name not in cli.run("images", "list").stdout
    finally:
        for image in engine.images.list(f"{registry}/small"):
            engine.images.remove(image.id, force=True)
