"""Damaged real files: a checked trace or one clear refusal, never a traceback, a hang or a gigabyte.

``PROFRUN_FUZZ=thorough`` runs thousands of cases instead of a few.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profrun.collectors.normalize import normalize
from profrun.collectors.torch import reader_cut
from profrun.errors import ProfrunError
from tests.conftest import shared_data
from tests.fuzz.damage import cut, flip, insert, remove, repeat

pytestmark = pytest.mark.thorough

THOROUGH = os.environ.get("PROFRUN_FUZZ") == "thorough"
CASES = 3000 if THOROUGH else 8
FILES = (
    "h200/torch/mlp.json.gz",
    "amd/kineto-rocm-hta-mi250/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "amd/kineto-rocm-tracelens/torch_compile_triton/trace.json.gz",
    "nvidia/hta/cuda_event_sync_multi_stream.json.gz",
    "nvidia/hta/large_integer_rank-70.pt.trace.json.gz",
    "nvidia/kineto-tb/gpu_metrics_input.json",
)
VALUES = (
    *(b"null", b"NaN", b"-1", b"0", b"1e18", b"1e400", b"-9223372036854775809", b"18446744073709551616"),
    *(
        b'""',
        b'"x"',
        b"[]",
        b"{}",
        b"[[[]]]",
        b'{"a": {"b": []}}',
        b"true",
        b"1.5",
        b'"stream 7"',
        b"0x10",
        b"\xff",
    ),
)


@cache
def original(name: str) -> bytes:
    """The unpacked text of a real file."""
    data = shared_data(name).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def values(data: bytes, rng: random.Random) -> bytes:
    """Replace the values of one key, or of some of them, by what does not belong there."""
    key = rng.choice((b"ts", b"dur", b"pid", b"tid", b"name", b"cat", b"ph", b"args", b"correlation", b"grid",
                      b"device", b"stream", b"External id", b"block", b"bytes", b"id"))  # fmt: skip
    parts = data.split(b'"' + key + b'": ')
    out = [parts[0]]
    for part in parts[1:]:
        stop = min((at for at in (part.find(b","), part.find(b"\n"), part.find(b"}")) if at >= 0), default=0)
        replaced = rng.random() < 0.3
        out.append((rng.choice(VALUES) + part[stop:]) if replaced else part)
    return (b'"' + key + b'": ').join(out)


def keys(data: bytes, rng: random.Random) -> bytes:
    old = rng.choice(
        (b'"traceEvents"', b'"deviceProperties"', b'"baseTimeNanoseconds"', b'"args"', b'"schemaVersion"')
    )
    return data.replace(old, rng.choice((b'"x"', b'""', b"x", b"")), rng.choice((1, -1)))


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    cut,
    flip,
    remove,
    repeat,
    insert,
    values,
    keys,
)


def damaged(seed: int) -> bytes:
    """A real file after one to three mutations, plain or gzip, the gzip damaged or not."""
    rng = random.Random(seed)
    data = original(rng.choice(FILES))
    for _ in range(rng.choice((1, 1, 2, 3))):
        if data:
            data = rng.choice(MUTATIONS)(data, rng)
    if rng.random() < 0.3:
        data = gzip.compress(data, 1)
        if rng.random() < 0.6:
            data = rng.choice((cut, flip, remove, insert))(data, rng)
    return data


@settings(
    max_examples=CASES, deadline=None, derandomize=not THOROUGH, suppress_health_check=[HealthCheck.too_slow]
)
@given(st.integers(0, 2**64 - 1))
def test_damaged_files_end_in_a_checked_trace_or_a_clear_refusal(seed: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="profrun-fuzz-"))
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        (folder / "a.json").write_bytes(damaged(seed))
        refusal = None
        try:
            block = 3000 if seed % 2 else reader_cut.BLOCK  # many pieces, or one
            with patch.multiple(reader_cut, BLOCK=block, HEAD=min(block, reader_cut.HEAD)):
                normalize([folder / "a.json"], folder / "trace")  # checks every invariant as well
        except ProfrunError as error:
            refusal = str(error)
        assert (folder / "trace").exists() == (refusal is None)
        assert "\n" not in (refusal or "")
        assert not list(folder.glob("*.partial"))
    finally:
        shutil.rmtree(folder)
    assert time.monotonic() - started < 60
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes, of all tests of this process
    assert peak < 1 << 20 or peak == before, "one GB"


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b'{"schemaVersion": 1, "traceEvents": [', b"[", b"\x1f\x8b\x08"]),
)
@settings(max_examples=CASES, deadline=None, derandomize=not THOROUGH)
def test_noise_is_refused_or_read(noise: bytes, head: bytes) -> None:
    folder = Path(tempfile.mkdtemp(prefix="profrun-fuzz-"))
    try:
        (folder / "a").write_bytes(head + noise)
        with contextlib.suppress(ProfrunError):
            normalize([folder / "a"], folder / "trace")
        assert not list(folder.glob("*.partial"))
    finally:
        shutil.rmtree(folder)
