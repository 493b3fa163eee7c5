"""Findings by cause: what explains what, under conditions on the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from profrun.analysis.rules import causes
from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.causes import LINKS
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import RuleFinding, UnprofiledStep, diagnose
from profrun.analysis.rules.rule import Hit
from profrun.contract.finding import SEVERITIES
from profrun.traces.trace import Trace
from tests.analysis.kit import Row, memory_trace, step
from tests.analysis.rules.cases import ADD, LAUNCH, LOADER, NCCL, NVJET, SGEMM, US

MS = 1000 * US


def findings(rows: Sequence[Row], **options: object) -> dict[str, RuleFinding]:
    return {one.code: one for one in diagnose(memory_trace(rows, **options))}  # type: ignore[arg-type]


def training(fetch: int, *, work: int = 50 * US, host: int = 100 * US, count: int = 3) -> list[Row]:
    """Steps that fetch a batch, then launch one fp32 GEMM and do other work on the host; times ns."""
    rows: list[Row] = []
    length = fetch + host + 20 * US
    for number in range(count):
        at = number * length
        rows.append(step(number, at, length))
        if fetch:
            rows.append(("op", LOADER, at + US, fetch, "main"))
        rows.append(("api", LAUNCH, at + fetch + 5 * US, 3 * US, "main"))
        rows.append(("kernel", SGEMM, at + fetch + 10 * US, work, "stream 7", {"launch": len(rows) - 1}))
    return rows


def test_the_graph_names_rules_and_says_its_conditions() -> None:
    rules = {rule.id for rule in all_rules()}
    for link in LINKS:
        assert {link.effect, link.cause} <= rules
        assert link.effect != link.cause
        assert link.condition
        assert not link.condition.endswith(".")
    assert len({(link.effect, link.cause) for link in LINKS}) == len(LINKS)


def test_findings_that_could_explain_each_other_in_a_circle_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each accounts for all of the next; nothing may go below itself, or it would be shown nowhere."""

    def all_of_it(*_: object) -> causes.Part:
        return causes.Part(1.0, 1.0, "it")

    circle = [("a", "b"), ("b", "c"), ("c", "a")]
    monkeypatch.setattr(causes, "LINKS", tuple(causes.Link(*pair, "", all_of_it) for pair in circle))
    found = {name: Hit(name) for name in "abc"}
    explained = causes.explain(Context(memory_trace([])), found, dict.fromkeys("abc", "info"))
    assert {code: one.by for code, one in explained.items()} == {"a": "b", "b": "c"}


def test_a_loader_that_takes_most_of_the_step_comes_before_everything_else() -> None:
    """91 % of the step is loading; the GPU works 50 us of it, in fp32."""
    twin = UnprofiledStep(ns=5_120 * US, low_ns=0, high_ns=0, trials=1, steps=3, clock="wall")
    every = diagnose(memory_trace(training(5 * MS)), unprofiled=twin)
    assert (every[0].code, every[0].severity) == ("dataloader-stall", "critical")
    assert every[0].gain_ns == 5 * MS
    found = {one.code: one for one in every}
    assert found["low-utilization"].explained_by == "dataloader-stall"
    assert found["low-utilization"].severity == "info"
    assert found["fp32-gemm"].severity == "info"
    assert "overhead-bound" not in found  # what is left of the idle time is under 5 % of the step


def test_the_host_is_late_beside_the_loader_in_time_of_its_own() -> None:
    found = findings(training(300 * US, host=80 * US))
    host = found["overhead-bound"]
    assert host.explained_by == "dataloader-stall"
    assert host.because == "85.7 % of the time in which the GPU waits for the host"
    assert host.severity == "warning"  # 50 us of 400 us per step that loading does not explain
    assert host.gain_ns == 50_000


def test_a_short_fetch_does_not_explain_a_late_host() -> None:
    found = findings(training(20 * US, host=300 * US))
    assert found["dataloader-stall"].explained_by is None
    assert found["overhead-bound"].explained_by is None
    assert found["low-utilization"].explained_by == "overhead-bound"


def test_a_cause_is_followed_by_what_it_explains() -> None:
    every = diagnose(memory_trace(training(300 * US, host=80 * US)))
    places = {one.code: place for place, one in enumerate(every)}
    for place, one in enumerate(every):
        if one.explained_by is not None:
            assert places[one.explained_by] < place
            between = every[places[one.explained_by] + 1 : place]
            assert all(two.explained_by is not None for two in between)


def two_ranks(late: str, ns: int) -> list[Row]:
    """Two ranks with a GEMM and an all-reduce; rank 1 comes ``ns`` later, for a reason: its loader or its
    GEMM."""
    rows: list[Row] = []
    for rank in (0, 1):
        own = ns if rank else 0
        fetch = own if late == "loader" else 0
        gemm = 100 * US + (own if late == "gemm" else 0)
        track = f"r{rank}:"
        rows.append(step(0, 0, 500 * US + ns, f"{track}main"))
        if fetch:
            rows.append(("op", LOADER, US, fetch, f"{track}main"))
        for place, (name, at, dur) in enumerate(
            [
                (NVJET, 10 * US + fetch, gemm),
                (NCCL, 10 * US + fetch + gemm, 50 * US + ns - own),
            ]
        ):
            rows.append(("api", LAUNCH, 4 * US + fetch + place * 2 * US, US, f"{track}main"))
            extra: dict[str, Any] = {"launch": len(rows) - 1}
            if name == NCCL:
                extra |= {
                    "collectives.op": "allreduce",
                    "collectives.group": "0",
                    "collectives.group_size": 2,
                }
            rows.append(("kernel", name, at, dur, f"{track}stream 7", extra))
    return rows


def test_a_rank_that_loads_longer_is_late_because_of_its_loader() -> None:
    found = findings(two_ranks("loader", 300 * US), ranks=2)
    assert "for rank 1" in found["straggler"].what
    assert found["straggler"].explained_by == "dataloader-stall"
    assert found["exposed-communication"].explained_by == "straggler"


def test_a_rank_that_computes_longer_is_a_finding_of_its_own() -> None:
    found = findings(two_ranks("gemm", 300 * US), ranks=2)
    assert found["straggler"].explained_by is None
    assert found["straggler"].severity == "warning"


def syncs(count: int, *, after: int) -> list[Row]:
    """Steps that launch 50 us of GPU work, wait for it, and go on for a while on the host."""
    rows: list[Row] = []
    length = 60 * US + after
    for number in range(count):
        at = number * length
        rows += [step(number, at, length), ("api", LAUNCH, at, US, "main")]
        rows.append(("kernel", ADD, at + 2 * US, 50 * US, "stream 7", {"launch": len(rows) - 1}))
        rows.append(("api", "cudaDeviceSynchronize", at + US, 52 * US, "main"))
    return rows


def test_waits_after_which_the_gpu_runs_dry_explain_that_the_host_is_late() -> None:
    """Without its waits the host, 40 us per step, would be ahead of the GPU, 50 us per step."""
    twin = UnprofiledStep(ns=90 * US, low_ns=0, high_ns=0, trials=1, steps=9, clock="wall")
    every = diagnose(memory_trace(syncs(9, after=30 * US)), unprofiled=twin)
    found = {one.code: one for one in every}
    assert every[0].code == "explicit-sync"
    assert found["explicit-sync"].severity == "critical"
    assert found["overhead-bound"].explained_by == "explicit-sync"
    assert found["overhead-bound"].severity == "info"


def test_waits_of_a_host_that_is_late_anyway_explain_nothing() -> None:
    twin = UnprofiledStep(ns=560 * US, low_ns=0, high_ns=0, trials=1, steps=9, clock="wall")
    every = diagnose(memory_trace(syncs(9, after=500 * US)), unprofiled=twin)
    found = {one.code: one for one in every}
    assert found["overhead-bound"].explained_by is None
    assert found["overhead-bound"].severity == "critical"
    assert every[0].code == "overhead-bound"


def test_findings_of_their_own_are_sorted_by_severity_then_by_gain(real: Callable[..., Trace]) -> None:
    every = diagnose(real("h200/ddp/ddp_rank0.json.gz", "h200/ddp/ddp_rank1.json.gz"))
    alone = [one for one in every if one.explained_by is None]
    keys = [
        (SEVERITIES.index(one.severity), -(one.gain_ns if one.gain_ns is not None else -1)) for one in alone
    ]
    assert keys == sorted(keys)
    assert len(every) == len({one.code for one in every})


@pytest.mark.parametrize("name", ["train", "transformer", "rep2_transformer"])
def test_low_utilization_is_no_finding_of_its_own_where_its_cause_is_one(
    name: str, real: Callable[..., Trace]
) -> None:
    found = {one.code: one for one in diagnose(real(f"h200/torch/{name}.json.gz"))}
    assert found["low-utilization"].explained_by == "overhead-bound"
    assert found["low-utilization"].severity == "info"
