"""What cannot work in containers: one clear line each, the right exit code, nothing left."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.conftest import missing
from tests.real.docker.conftest import Cli, import_empty

pytestmark = pytest.mark.docker

JOB = "name: bad\ncommand: python -c pass\ncollectors: [none]\nimage: cuda\nresources: {shm: 64MiB}\n"


def refused(cli: Cli, job: str = JOB) -> tuple[int, str]:
    """Exit code and the last line on stderr."""
    cli.write("job.yaml", job)
    done = cli.run("submit", "job.yaml", "--backend", "docker")
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.strip().splitlines()[-1]


def test_no_engine(cli: Cli) -> None:
    cli.env["DOCKER_HOST"] = f"unix://{cli.folder}/none.sock"
    code, line = refused(cli)
    assert code == 69
    assert "no container engine answers" in line
    assert not (cli.folder / "runs").exists()


def test_an_engine_without_permission(cli: Cli, engine: Any) -> None:
    if os.getuid() != 0:
        missing("root, who alone can give a permission up,")
    cli.engine = False
    code, line = refused(cli)
    assert code == 69
    assert "may not talk to the container engine" in line
    assert not (cli.folder / "runs").exists()


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("image: cuda", "image: localhost:1/no-such-image:1"), 69, "localhost:1/no-such-image:1"),
        (("image: cuda", "image: none"), 64, "image: none means no container"),
        (("shm: 64MiB", "shm: 64MiB, gpus: 1"), 69, "asks for 1 GPU, and no GPU was found here"),
        (("shm: 64MiB", "shm: 64MiB, nodes: 2"), 64, "the job asks for 2 nodes"),
        (
            ("image: cuda", "image: cuda\nmounts: ['/no/such/folder:/data']"),
            69,
            "/no/such/folder is to be mounted",
        ),
        (("image: cuda", "image: cuda\nsecrets: [NOT_SET_ANYWHERE]"), 64, "NOT_SET_ANYWHERE"),
    ],
)
def test_one_line_each(
    cli: Cli, engine: Any, cuda: str, change: tuple[str, str], code: int, said: str
) -> None:
    found, line = refused(cli, JOB.replace(*change))
    assert (found, said in line) == (code, True), line
    assert not (cli.folder / "runs").exists()


def test_an_image_without_the_profiler(cli: Cli, engine: Any, standin: str, cuda: str) -> None:
    """The stand-in base has no nsys: the trial fails before the workload starts, and says what to do."""
    cli.write("job.yaml", JOB.replace("[none]", "[nsys]").replace("image: cuda", f"image: {standin}"))
    done = cli.run("submit", "job.yaml", "--backend", "docker")
    assert done.returncode == 1
    assert "nsys is not in this image" in done.stdout + done.stderr


def test_an_image_without_python(cli: Cli, engine: Any) -> None:
    import_empty(engine, "profrun/test-bare:1")
    try:
        cli.write("job.yaml", JOB.replace("image: cuda", "image: profrun/test-bare:1"))
        done = cli.run("submit", "job.yaml", "--backend", "docker")
        assert done.returncode == 1
        assert "the image has no python3" in done.stdout + done.stderr
    finally:
        engine.images.remove("profrun/test-bare:1", force=True)
