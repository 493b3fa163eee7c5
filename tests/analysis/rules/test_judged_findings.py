"""Findings that were judged by hand: tests/data/judged_findings.tsv, made again from the recordings.

A finding that nobody has judged fails the test, as does a useful one that is gone: look at it in its
recording, and write down what it is worth.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.analysis.rules.recordings import diagnosed
from tests.conftest import ROOT, first

TABLE = ROOT / "tests/data/judged_findings.tsv"
VERDICTS = {"useful", "trivial", "misleading", "false"}
GRAVE = {"critical", "warning"}

PLANTED = {
    "run:dead/torch": "dataloader-stall",
    "run:dead/nsys": "dataloader-stall",
    "own:graph/torch+unprofiled": "explicit-sync",
    "own:graph/nsys-node+unprofiled": "explicit-sync",
    "own:graph/nsys-whole+unprofiled": "graph-kernels-hidden",
    "made:compile/recompiled.json.gz": "recompilation",
    "shared:nvidia/kineto-tb/resnet50_nw0.pt.trace.json.gz": "dataloader-stall",
    "shared:nvidia/kineto-tb/resnet50_nw0_old.pt.trace.json.gz": "dataloader-stall",
    "shared:h200/torch/matmul_add_64.json.gz": "overhead-bound",
    "run:hf/torch": "fp32-gemm",
    "program:workers/torch": "dataloader-stall",
    "program:lightning_loader/torch": "dataloader-stall",
    "program:gan/torch": "overhead-bound",
    "program:decoding/torch": "overhead-bound",
    "program:small_kernels/torch": "overhead-bound",
    "program:trainer/torch": "overhead-bound",
    "program:compiled/torch": "recompilation",
    "program:attention/torch": "unfused-attention",
    "program:layout/torch": "layout-changes",
    "program:pageable/torch": "pageable-copies",
    "program:empty_cache/torch": "host-code",
    "program:ddp_slow_rank/torch": "host-code",
}
"""Recordings of programs that were written with one problem -> the rule that must name it first."""


class Row(NamedTuple):
    """One judged finding."""

    version: str
    recording: str
    code: str
    severity: str
    verdict: str
    reason: str


def rows() -> Iterator[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        yield from (Row(**row) for row in csv.DictReader(file, delimiter="\t"))


AFTER = [row for row in rows() if row.version == "after"]
RECORDINGS = list(dict.fromkeys([*PLANTED, *(row.recording for row in AFTER), "made:compile/cached.json.gz"]))


@pytest.mark.parametrize("name", first(4, RECORDINGS))
def test_every_finding_of_a_recording_was_judged(name: str, tmp_path: Path) -> None:
    found = diagnosed(name, tmp_path)
    judged = {row.code: row for row in AFTER if row.recording == name}
    new = [f"{one.severity} {one.code}: {one.what}" for one in found if one.code not in judged]
    graver = [one.code for one in found if one.severity in GRAVE and judged[one.code].severity not in GRAVE]
    kept = {one.code for one in found if one.severity in GRAVE}
    lost = [
        row.code
        for row in judged.values()
        if row.severity in GRAVE and row.verdict == "useful" and row.code not in kept
    ]
    assert (new, graver, lost) == ([], [], [])
    if name in PLANTED:
        assert found[0].code == PLANTED[name]


def test_the_table_is_whole() -> None:
    assert len({row.recording for row in AFTER}) >= 28
    for row in rows():
        assert row.verdict in VERDICTS
        assert row.severity in {*GRAVE, "info"}
        assert row.reason
    keys = [(row.recording, row.code) for row in AFTER]
    assert len(keys) == len(set(keys))


def test_what_the_findings_are_worth() -> None:
    """No false one, at most 5 % misleading; at least 80 % of the critical ones and warnings are useful."""
    every = Counter(row.verdict for row in AFTER)
    grave = Counter(row.verdict for row in AFTER if row.severity in GRAVE)
    assert every["false"] == 0
    assert every["misleading"] <= 0.05 * sum(every.values())
    assert grave["misleading"] <= 0.05 * sum(grave.values())
    assert grave["useful"] >= 0.8 * sum(grave.values())
