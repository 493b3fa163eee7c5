"""Calls by their names, and what is read of a trace's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.traces.causality.recording import (
    COPY,
    COPY_ASYNC,
    DEVICE_WAIT,
    STREAM_WAIT,
    call_class,
    launches_wait,
    read_copies,
    read_early_launch,
    read_named,
    recording_of,
)
from profrun.traces.checks_slices import Slices
from tests.tracekit import make_trace


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("cudaDeviceSynchronize", DEVICE_WAIT),
        ("cuCtxSynchronize", DEVICE_WAIT),
        ("hipDeviceSynchronize", DEVICE_WAIT),
        ("cudaStreamSynchronize_ptsz", STREAM_WAIT),
        ("hipStreamSynchronize", STREAM_WAIT),
        ("cudaMemcpy", COPY),
        ("hipMemcpyWithStream", COPY),
        ("cuMemcpyDtoH_v2", COPY),
        ("cudaMemcpyAsync", COPY_ASYNC),
        ("cuMemcpyHtoDAsync_v2", COPY_ASYNC),
        ("cudaMemcpy2DAsync", COPY_ASYNC),
        ("cudaEventSynchronize", 0),
        ("cudaStreamWaitEvent", 0),
        ("cudaLaunchKernel", 0),
    ],
)
def test_the_class_of_a_call(name: str, known: int) -> None:
    assert call_class(name) == known


def test_blocking_launches_are_believed_where_it_was_measured() -> None:
    assert launches_wait({"launch_blocking": True, "vendor": "nvidia"})
    assert not launches_wait({"launch_blocking": True, "vendor": "amd"})
    assert not launches_wait({"launch_blocking": None, "vendor": "nvidia"})


def test_what_is_read_of_a_trace(tmp_path: Path) -> None:
    trace = make_trace(
        tmp_path / "t",
        [
            ("step", "ProfilerStep#7", 0, 100_000, "main"),
            ("api", "cudaMemcpyAsync", 10, 20, "main", {"parent": 0, "depth": 1}),
            ("memcpy", "Memcpy DtoH", 500, 100, "stream 7",
             {"launch": 1, "copies.direction": "DtoH", "copies.dst_kind": "pageable"}),
            ("api", "cudaStreamSynchronize", 100, 900, "main", {"parent": 0, "depth": 1}),
            ("sync", "Stream Sync (stream 7)", 150, 800, "records of waits", {"launch": 3}),
            ("kernel", "k", 2000, 100, "stream 7"),
        ],
        device={"arch": "sm_90"},
    )  # fmt: skip
    named, copies = read_named(trace.tables), read_copies(trace.tables)
    assert (named.calls.tolist(), named.call_class.tolist()) == ([1, 3], [COPY_ASYNC, STREAM_WAIT])
    assert (named.steps.tolist(), named.step_number.tolist()) == ([0], [7])
    assert (named.syncs.tolist(), named.sync_stream.tolist()) == ([4], [7])
    assert (copies.slices.tolist(), copies.to_host.tolist(), copies.to_pageable.tolist()) == (
        [2],
        [True],
        [True],
    )
    assert read_early_launch(trace.tables) == {0}
    rec = recording_of(trace.tables, Slices(trace.tables).columns(), trace.meta)
    assert rec.gpu.tolist() == [2, 5]
    assert rec.launched.tolist() == [2]
    assert rec.texts(rec.gpu[::-1]) == ["k", "Memcpy DtoH"]
    assert rec.ends_in_call.tolist() == [False, False, True, False, False, False]
    assert rec.resolution == 1
