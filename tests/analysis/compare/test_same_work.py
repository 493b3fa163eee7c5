"""Do two trials do the same work? What was seen counts before what was declared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profrun.analysis.compare import compare
from profrun.analysis.compare.compared_trial import KernelGroup, StepWork
from profrun.analysis.compare.same_work import AMOUNT, compare_work, options_of
from tests.analysis.compare.trials import OTHER, stops, trial


@pytest.mark.parametrize(
    ("a", "b", "different"),
    [
        # What was seen counts before what was said: the variant asked for 8, the hook saw 2.
        ({"inputs": "[2, 64] float", "values": {"batch": 8}}, {"inputs": "[2, 64] half"}, False),
        ({"inputs": "[2, 64] float"}, {"inputs": "[4, 64] float"}, True),
        ({"values": {"batch": 8}, "name": "x"}, {"values": {"batch": 16}, "name": "y"}, True),
        (
            {"values": {"batch": 8, "compile": False}, "name": "x"},
            {"values": {"batch": 8, "compile": True}, "name": "y"},
            False,
        ),
        ({"name": "x", "job": "r", "variant": "v"}, {"name": "y", "job": "r", "variant": "v"}, False),
        ({"name": "x"}, {"name": "y"}, False),  # other kernels, and nothing tells: a warning
        ({"name": "x"}, {"name": "x"}, False),  # the same kernels with the same grids
        ({"work": StepWork(matrix_flops=1e9)}, {"work": StepWork(matrix_flops=1.01e9)}, False),
        ({"work": StepWork(matrix_flops=1e9)}, {"work": StepWork(matrix_flops=1.1e9)}, True),
        # Recomputation does more FLOPs on the same inputs.
        ({"work": StepWork(3e9), "inputs": "[2] f"}, {"work": StepWork(4e9), "inputs": "[2] f"}, False),
        ({"work": StepWork(1e9), "inputs": "[2] f"}, {"work": StepWork(4e9), "inputs": "[2] f"}, True),
    ],
)
def test_same_work_or_not(a: dict[str, Any], b: dict[str, Any], *, different: bool) -> None:
    nothing = {"work": StepWork()}
    found = compare([trial(**nothing | a)], [trial(OTHER, **nothing | b)])
    assert ("work" in stops(found)) is different


def _told(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(code, severity, sentence) of what is said about the work; without shapes unless given."""
    nothing = {"work": StepWork()}
    found = compare([trial(**nothing | a)], [trial(OTHER, **nothing | b)])
    return [(one.code, one.severity, str(one)) for one in found.reasons if one.code.startswith("work")]


EAGER: dict[str, Any] = {"name": "x", "job": "hf-1", "variant": "eager", "program": ("train.py", "--eager")}
COMPILED: dict[str, Any] = {"name": "y", "job": "hf-2", "variant": "default", "program": ("train.py",)}


def test_eager_and_compiled_code_of_one_script_are_compared_with_a_warning() -> None:
    """Two runs of one script without shapes: other kernels, and nothing that speaks for other work."""
    ((code, severity, text),) = _told(EAGER, COMPILED)
    assert (code, severity) == ("work_unproven", "warning")
    assert "per step, but both ran train.py, with other arguments (a: --eager); shapes" in text


def test_nothing_at_all_is_a_warning_too() -> None:
    ((code, severity, text),) = _told({"name": "x"}, {"name": "y"})
    assert (code, severity) == ("work_unproven", "warning")
    assert "there are no shapes and no declared amounts, and the kernels differ" in text


def test_an_amount_among_the_arguments_is_evidence_of_different_work() -> None:
    ((code, severity, text),) = _told(
        EAGER | {"program": ("train.py", "--batch-size", "8")},
        COMPILED | {"program": ("train.py", "--batch-size=16")},
    )
    assert (code, severity) == ("work", "critical")
    assert "--batch-size 8 against 16" in text


def test_only_signs_against_the_same_work_stop_a_comparison() -> None:
    other = COMPILED | {"program": ("serve.py",)}
    ((code, severity, text),) = _told(EAGER, other)
    assert (code, severity) == ("work", "critical")
    assert "the programs are train.py and serve.py" in text
    assert "the traces hold no shapes" in text
    one_job = other | {"job": EAGER["job"]}  # the job's author declared them as variants of one thing
    ((code, severity, text),) = _told(EAGER, one_job)
    assert (code, severity) == ("work_unproven", "warning")
    assert "what speaks against it is that the programs are train.py and serve.py" in text


def test_shapes_count_before_signs() -> None:
    one = {"work": StepWork(matrix_flops=1e9)}
    more = {"work": StepWork(matrix_flops=4e9)}
    assert [told[0] for told in _told(EAGER | one, COMPILED | one)] == []
    assert [told[0] for told in _told(EAGER | one, COMPILED | more)] == ["work"]


def test_a_little_more_matrix_work_of_one_program_is_explained_by_padding_or_recomputation() -> None:
    one, more = ({"work": StepWork(matrix_flops=flops)} for flops in (1e9, 1.3e9))
    same_arguments = COMPILED | {"program": EAGER["program"]} | more
    assert [told[0] for told in _told(EAGER | one, same_arguments)] == ["work_unproven"]
    assert [told[0] for told in _told({"name": "x"} | one, {"name": "y"} | more)] == ["work"]


def test_flops_that_are_not_all_of_a_side_prove_only_that_it_does_at_least_so_much() -> None:
    """A compiler's template multiplies matrices without a matrix op: its FLOPs are in no shape."""
    eager, compiled = trial(work=StepWork(4e9), name="x"), trial(OTHER, work=StepWork(1e9), name="y")
    assert compare_work(eager, compiled).answer == "different"
    hidden = KernelGroup("triton_mm", "gemm", "compute", ("compiled",), "r", None, False, 5, 100)
    partly = replace(compiled, kernel_groups=(*compiled.kernel_groups, hidden))
    assert compare_work(eager, partly).answer == "unknown"
    assert compare_work(compiled, replace(eager, kernel_groups=partly.kernel_groups)).answer == "different"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("x.py", "--bs", "8", "--compile"), {"bs": "8"}),
        (("x.py", "--bs=8", "-n", "4"), {"bs": "8", "n": "4"}),
        (("x.py", "train", "--lr", "-1"), {}),
        ((), {}),
    ],
)
def test_options_of_a_program(words: tuple[str, ...], found: dict[str, str]) -> None:
    assert options_of(words) == found


@pytest.mark.parametrize(
    "name", ["batch", "batch_size", "micro_batch", "seq_len", "n_layers", "hidden_dim", "tokens"]
)
def test_amounts(name: str) -> None:
    assert AMOUNT.match(name)


@pytest.mark.parametrize("name", ["precision", "compile", "attention", "lr", "workers", "log_every", "seed"])
def test_no_amounts(name: str) -> None:
    assert not AMOUNT.match(name)
