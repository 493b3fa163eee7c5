"""From the word in a job spec to a reference, and what an image is known by."""

from __future__ import annotations

import pytest

from profrun.errors import UsageError
from profrun.images.resolve import _digest, _split, reference


@pytest.mark.parametrize(
    ("wanted", "vendor", "expected"),
    [
        ("auto", "nvidia", "profrun/cuda:latest"),
        ("auto", "amd", "profrun/rocm:latest"),
        ("auto", "none", "profrun/cuda:latest"),
        ("cuda", "amd", "profrun/cuda:latest"),
        ("rocm", "none", "profrun/rocm:latest"),
        ("nvcr.io/nvidia/pytorch:25.12-py3", "amd", "nvcr.io/nvidia/pytorch:25.12-py3"),
    ],
)
def test_auto_follows_the_gpu(wanted: str, vendor: str, expected: str) -> None:
    assert reference(wanted, vendor) == expected


def test_no_image_is_no_container() -> None:
    with pytest.raises(UsageError, match="--backend local"):
        reference("none", "nvidia")


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("a/b:1", ["c/d@sha256:1", "a/b@sha256:2"], "a/b@sha256:2"),
        ("localhost:5000/b", ["localhost:5000/b@sha256:2"], "localhost:5000/b@sha256:2"),
        ("debian:12", ["docker.io/library/debian@sha256:3"], "docker.io/library/debian@sha256:3"),
        ("x", ["c/d@sha256:1"], "c/d@sha256:1"),
        ("x", [], "sha256:0"),
    ],
)
def test_the_digest_is_the_registrys_else_the_id(name: str, known: list[str], expected: str) -> None:
    assert _digest(name, known, "sha256:0") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b:1", ("a/b", "1")),
        ("a/b", ("a/b", "latest")),
        ("localhost:5000/b", ("localhost:5000/b", "latest")),
        ("a/b@sha256:1", ("a/b", "sha256:1")),
    ],
)
def test_what_is_pulled(name: str, expected: tuple[str, str]) -> None:
    assert _split(name) == expected
