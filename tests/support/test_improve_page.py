"""The page of what improvements of the programs with a known answer gave."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.codec import to_json
from profrun.store.improvement import ExperimentResult, Improvement, Promised
from tests.conftest import ROOT

LOADER = Promised("dataloader-stall", 4_000_000, 0.4)
CURED = ExperimentResult(
    "w4",
    ("loader-workers=4",),
    {},
    (LOADER,),
    "proven",
    0.7,
    (0.68, 0.73),
    base_ns=10_000_000,
    step_ns=7_000_000,
)
NOTHING = ExperimentResult("n", ("nothing=1",), state="no gain", ratio=1.004, interval=(0.99, 1.01))
MEASURED = "| 30.0 % (27.0 % to 32.0 %) | +0.0 % | proven |"
COUNTED = (
    "The remedy is proven in 1 of 2 programs. Of 1 of these the known gain was measured; "
    "the gain of 1 is within 20.0 % of it."
)
OTHERS = "| `nothing=1` no gain | 1 min 01 s |"


@pytest.fixture(scope="module")
def page() -> Any:
    """The module, which imports its neighbours as a script of bench does."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return importlib.import_module("improving.page")
    finally:
        sys.path.pop(0)


def keep(folder: Path, name: str, *experiments: ExperimentResult, **more: Any) -> None:
    """Keep a document as ``profrun improve --json`` prints it."""
    folder.mkdir(exist_ok=True)
    found = Improvement("run", "default", experiments, step_ns=10_000_000, spent_s=61.0, **more)
    (folder / f"{name}.json").write_text(json.dumps(to_json(found)))


def rows(text: str) -> list[str]:
    """The rows of the tables, and the sentences that count them."""
    return [
        line
        for line in text.splitlines()
        if line.startswith(("| slow", "| zero", "| clean", "| gan", "The rem"))
    ]


def test_a_planted_program_stands_beside_its_known_gain(page: Any, tmp_path: Path) -> None:
    """Known: 28, 30 and 32 % of the mean step; measured: 30 %."""
    keep(tmp_path / "h200", "slow_loader", CURED, gpus=("NVIDIA H200",))
    keep(tmp_path / "h200", "zero_grad", gpus=("NVIDIA H200",))
    gains = page.known.Known(
        "slow_loader",
        "loader-workers=4",
        plain_mean_ms=[10.0, 10.0, 10.0],
        fixed_mean_ms=[7.2, 7.0, 6.8],
    )
    (tmp_path / "known-h200.json").write_text(json.dumps({"programs": {"slow_loader": gains.json()}}))
    asked = "[dataloader-stall](rules/dataloader-stall.md)"
    assert rows(page.page(tmp_path)) == [
        f"| slow_loader | NVIDIA H200 | `loader-workers=4` | {asked} | 30.0 % (28.0 % to 32.0 %) " + MEASURED,
        "| zero_grad | NVIDIA H200 | `set-to-none` | no | - | - | - | not asked for |",
        COUNTED,
    ]


def test_planted_programs_that_a_machine_did_not_measure_are_named(page: Any, tmp_path: Path) -> None:
    """On a CPU only those whose stall is there, too; where all were measured nothing is said."""
    planted = [program.name for program in page.PLANTED]
    for name in planted:
        keep(tmp_path / "h200", name, gpus=("NVIDIA H200",) * (2 if name == "tiny_buckets" else 1))
    for name in ("slow_loader", "slow_loader_decode", "unfused_optimizer", "pointwise_chain", "norm_chain"):
        keep(tmp_path / "cpu", name)
    said = [line for line in page.page(tmp_path).splitlines() if line.startswith("Not measured")]
    assert said == ["Not measured on CPU, or changed since: tiny_buckets, recompilation, one_thread."]
    (tmp_path / "h200" / "zero_grad.json").unlink()
    assert "\nNot measured on NVIDIA H200, or changed since: zero_grad.\n" in page.page(tmp_path)


def test_an_experiment_that_changes_nothing_and_is_called_something_is_counted(
    page: Any, tmp_path: Path
) -> None:
    wrong = replace(NOTHING, state="slower", ratio=1.05)
    keep(tmp_path / "cpu", "clean_gemm_1024", NOTHING, NOTHING, wrong)
    keep(tmp_path / "cpu", "clean_cpu_256", NOTHING)
    text = page.page(tmp_path)
    assert rows(text) == [
        "| clean_gemm_1024 | CPU | 10 ms | 3 | 1 | 5.0 % |",
        "| clean_cpu_256 | CPU | 10 ms | 1 | 0 | 0.4 % |",
    ]
    assert (
        "4 experiments that change nothing, in 2 improvements: 1 called faster or slower, 25.0 %.\n" in text
    )


def test_of_a_real_program_what_is_kept_is_told(page: Any, tmp_path: Path) -> None:
    keep(tmp_path / "h200", "gan", CURED, NOTHING, gpus=("NVIDIA H200",) * 2, together=CURED)
    keep(tmp_path / "old", "gan", NOTHING)
    assert rows(page.page(tmp_path)) == [
        "| gan | 2 x NVIDIA H200 | 10 ms | 7 ms | 30.0 % (27.0 % to 32.0 %) | `loader-workers=4` " + OTHERS,
        "| gan | CPU | 10 ms | - | - | - " + OTHERS,
    ]


def test_the_page_in_the_docs_is_made_of_what_is_kept(page: Any) -> None:
    command = "run `python bench/improve.py page docs/improve-measured.md tests/data/improve`"
    made = page.page(ROOT / "tests/data/improve")
    assert (ROOT / "docs/improve-measured.md").read_text(encoding="utf-8") == made, command
