"""Every rule: found where it is, silent where it is not; and what keeps a finding from resting on a bad
number."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.context import Context
from profrun.analysis.rules.diagnose import diagnose
from profrun.analysis.rules.docs import index_page, rule_page
from profrun.contract.finding import SEVERITIES
from profrun.traces.trace import Trace
from tests.analysis.kit import memory_trace, step
from tests.analysis.rules.cases import CASES, Case
from tests.conftest import ROOT

RULES = {rule.id: rule for rule in all_rules()}


def ask(rule: str, case: Case) -> list[str]:
    trace = memory_trace(case.rows, **case.options)
    hits = list(RULES[rule].find(Context(trace, case.provenance)))
    size = len(case.rows)
    for hit in hits:
        assert hit.numbers, "a finding has evidence"
        assert all(0 <= one < size for one in hit.slices), "slices exist"
        assert re.search(r"\d", hit.what) or hit.names or hit.numbers
    return [hit.what for hit in hits]


@pytest.mark.parametrize("rule", CASES)
def test_found_where_it_is(rule: str) -> None:
    found = ask(rule, CASES[rule][0])
    assert found
    assert any(CASES[rule][0].says in message for message in found), found


@pytest.mark.parametrize("rule", CASES)
def test_silent_where_it_is_not(rule: str) -> None:
    assert ask(rule, CASES[rule][1]) == []


def test_every_rule_has_its_two_cases_its_words_and_a_known_severity() -> None:
    assert set(CASES) == set(RULES)
    for rule in RULES.values():
        assert rule.severity in SEVERITIES
        assert rule.meaning.endswith(".")
        assert rule.threshold.endswith(".")
        assert rule.advice.endswith(".")
        assert re.fullmatch(r"[a-z0-9-]+", rule.id)


@pytest.mark.parametrize(
    "rows", [[], [step(0, 0, 0)], [("kernel", "k", 5, 0, "stream 1")], [("op", "a", 0, 0, "main")]]
)
def test_odd_traces_are_no_error(rows: list[tuple[object, ...]]) -> None:
    diagnose(memory_trace(rows))


def test_no_finding_rests_on_a_withheld_number() -> None:
    rows = [
        step(0, 0, 1000), ("api", "cudaGraphLaunch", 10, 5, "main"),
        ("api", "cudaLaunchKernel", 20, 5, "main"),
        ("kernel", "k", 100, 10, "stream 7", {"launch": 2}),
    ]  # fmt: skip
    found = {finding.code for finding in diagnose(memory_trace(rows))}
    assert "graph-kernels-hidden" in found
    assert not found & {"overhead-bound", "low-utilization", "tiny-kernels"}


def test_a_doubtful_number_marks_its_finding() -> None:
    rows = [
        step(0, 0, 1000), ("api", "cudaLaunchKernel", 20, 5, "main"),
        ("kernel", "k", 100, 10, "stream 7", {"launch": 1}), ("kernel", "old", 5, 2, "stream 7"),
    ]  # fmt: skip
    (finding,) = [one for one in diagnose(memory_trace(rows)) if one.code == "low-utilization"]
    assert finding.quality == ("window_edge",)
    document = finding.to_json()
    assert {"code", "severity", "what", "why", "fix", "title", "threshold", "evidence", "quality"} <= set(
        document
    )
    assert document["evidence"]["utilization"] == pytest.approx(
        10 / 993
    )  # the window starts after stray work


def test_gravest_first() -> None:
    order = [
        SEVERITIES.index(finding.severity)
        for finding in diagnose(memory_trace(CASES["overhead-bound"][0].rows))
    ]
    assert order == sorted(order)
    assert len(set(order)) > 1


def test_the_docs_pages_are_those_of_the_code() -> None:
    docs = ROOT / "docs"
    command = "run `python -m profrun.analysis.rules.docs docs`"
    assert (docs / "rules.md").read_text(encoding="utf-8") == index_page(), command
    pages = {path.stem: path for path in (docs / "rules").glob("*.md")}
    assert set(pages) == set(RULES), command
    for name, path in pages.items():
        assert path.read_text(encoding="utf-8") == rule_page(RULES[name]), command


# What the H200 recordings must show.
MUST = {
    "matmul_add_64": ({"overhead-bound"}, {"compute-bound"}),
    "matmul_add_4096": ({"compute-bound"}, {"overhead-bound", "low-utilization"}),
    "transformer": (
        {"tf32-gemm", "unfused-attention", "overhead-bound", "low-utilization"},
        {"compute-bound"},
    ),
    "transformer_optim": (set(), {"tf32-gemm", "unfused-attention", "overhead-bound", "low-utilization"}),
    "mlp": ({"kernel-mix", "pointwise-chains"}, {"inductor-fusion", "launch-blocking"}),
    "mlp_compile": ({"inductor-fusion"}, {"pointwise-chains"}),
    "train": ({"implicit-sync", "overhead-bound"}, {"launch-blocking"}),
    "mlp_blocking": ({"launch-blocking"}, {"overhead-bound"}),
    "matmul_add_64_blocking": ({"launch-blocking"}, {"overhead-bound"}),
    "transformer_blocking": ({"launch-blocking"}, {"overhead-bound"}),
    "train_blocking": ({"launch-blocking"}, {"overhead-bound"}),
}


@pytest.mark.parametrize("name", MUST)
def test_the_h200_recordings(name: str, real: Callable[..., Trace]) -> None:
    findings = diagnose(real(f"h200/torch/{name}.json.gz"))
    found = {finding.code for finding in findings}
    must, must_not = MUST[name]
    assert must <= found
    assert not must_not & found


def messages(name: str, rule: str, real: Callable[..., Trace]) -> str:
    findings = diagnose(real(f"h200/torch/{name}.json.gz"))
    return " | ".join(finding.what for finding in findings if finding.code == rule)


def test_the_recipe_of_a_step_and_what_the_compiler_made_of_it(real: Callable[..., Trace]) -> None:
    assert "5 kernels in every step: 3 gemm + 2 elementwise" in messages("mlp", "kernel-mix", real)
    assert "4 kernels in every step: 3 gemm + 1 elementwise" in messages("mlp_compile", "kernel-mix", real)
    assert "triton_poi_fused_gelu_mul_0 fuses gelu + mul" in messages("mlp_compile", "inductor-fusion", real)
    gemms = [
        {row[0] for row in real(f"h200/torch/{name}.json.gz").sql(
            "SELECT DISTINCT name FROM slices WHERE kind = 'kernel' AND name LIKE 'nvjet%'").rows}
        for name in ("mlp", "mlp_compile")
    ]  # fmt: skip
    assert gemms[0] == gemms[1]


def test_the_item_that_waits(real: Callable[..., Trace]) -> None:
    assert "aten::item waits for the GPU in cudaStreamSynchronize" in messages("train", "implicit-sync", real)


def test_the_straggler_of_two_ranks(real: Callable[..., Trace]) -> None:
    findings = diagnose(real("h200/ddp/ddp_rank0.json.gz", "h200/ddp/ddp_rank1.json.gz"))
    (finding,) = [one for one in findings if one.code == "straggler"]
    assert "wait 89.55 ms for rank 1" in finding.what
    assert (Path(ROOT) / "docs" / "rules" / "straggler.md").exists()
