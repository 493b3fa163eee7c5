"""A build's cache key: changes with everything that decides the image, and with nothing else."""

from __future__ import annotations

import dataclasses
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.errors import UsageError
from profrun.images.catalogue import KINDS, default_base
from profrun.images.recipe import CONTEXT, Recipe, recipe

BASE = "sha256:" + "a" * 64
PLAIN = Recipe("cuda", "base:1", {"A": "1"}, b"ARG A\nFROM x\n", {f"{CONTEXT}/f.sh": b"echo"})


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(PLAIN, dockerfile=b"ARG A\nFROM x\n#"),
        dataclasses.replace(PLAIN, context={f"{CONTEXT}/f.sh": b"echO"}),
        dataclasses.replace(PLAIN, context={f"{CONTEXT}/g.sh": b"echo"}),
        dataclasses.replace(PLAIN, args={"A": "2"}),
        dataclasses.replace(PLAIN, args={"A": "1", "B": ""}),
        dataclasses.replace(PLAIN, kind="rocm"),
    ],
)
def test_one_byte_makes_another_key(other: Recipe) -> None:
    assert other.key(BASE) != PLAIN.key(BASE)


def test_the_base_counts_by_content_not_by_name() -> None:
    renamed = dataclasses.replace(PLAIN, base="registry.example/other:latest")
    assert renamed.key(BASE) == PLAIN.key(BASE)
    assert PLAIN.key("sha256:" + "b" * 64) != PLAIN.key(BASE)


@given(st.binary(max_size=4), st.binary(max_size=4), st.binary(max_size=4), st.binary(max_size=4))
def test_no_two_contents_share_a_key(a: bytes, b: bytes, c: bytes, d: bytes) -> None:
    """Lengths are in the key, so bytes cannot move from one part to the next unnoticed."""
    left = dataclasses.replace(PLAIN, dockerfile=a, context={"f": b})
    right = dataclasses.replace(PLAIN, dockerfile=c, context={"f": d})
    assert (left.key(BASE) == right.key(BASE)) == ((a, b) == (c, d))


def test_the_context_is_the_same_bytes_every_time() -> None:
    archive = recipe("cuda").tar()
    assert archive == recipe("cuda").tar()
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        assert files.getnames() == ["Dockerfile", f"{CONTEXT}/install_nsys.sh"]
        assert {(info.mtime, info.uid, info.mode) for info in files} == {(0, 0, 0o644)}


def test_each_dockerfile_takes_only_what_it_copies() -> None:
    assert list(recipe("cuda").context) == [f"{CONTEXT}/install_nsys.sh"]
    assert list(recipe("rocm").context) == [f"{CONTEXT}/install_rocprofiler.sh"]


def test_the_dockerfiles_default_base_is_the_catalogues() -> None:
    for kind in KINDS:
        assert f"ARG BASE={default_base(kind).reference}\n".encode() in recipe(kind).dockerfile
        assert recipe(kind).base == default_base(kind).reference


def test_wrong_words() -> None:
    with pytest.raises(UsageError, match="no image 'cud'; choose one of cuda, rocm"):
        recipe("cud")
    with pytest.raises(UsageError, match=r"no argument NSYS; it has NSYS_VERSION, NVTX_VERSION$"):
        recipe("cuda", args={"NSYS": "1"})
    with pytest.raises(UsageError, match="the base is --base"):
        recipe("cuda", args={"BASE": "x"})
