"""Switches of torch, in real torch on the CPU; where a GPU is needed, torch is told that there is one."""

from __future__ import annotations

import pytest

from tests.in_job.changes.conftest import Programs

GPU = "torch.cuda.is_available = lambda: True"
SWITCHES = """
b = torch.backends.cuda
names = ("flash", "mem_efficient", "cudnn", "math")
out["on"] = [getattr(b, f"{name}_sdp_enabled")() for name in names]
"""


@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("FLASH_ATTENTION", [True, False, False, False]),
        ("EFFICIENT_ATTENTION", [False, True, False, False]),
        ("CUDNN_ATTENTION", [False, False, True, False]),
        ("MATH", [False, False, False, True]),
    ],
)
def test_only_one_backend_of_attention_is_allowed(programs: Programs, value: str, on: list[bool]) -> None:
    answer = programs.run(f"attention={value}", code=SWITCHES, before=GPU)
    assert answer.out["on"] == on
    assert answer.only == (
        "change-applied",
        f"attention={value}: {value} is the only backend that scaled_dot_product_attention may use",
    )


@pytest.mark.parametrize("change", ["attention", "cudnn-benchmark"])
def test_without_a_gpu_nothing_is_switched(programs: Programs, change: str) -> None:
    plain = programs.run(code=SWITCHES)
    answer = programs.run(change, code=SWITCHES)
    assert answer.out == plain.out
    assert answer.only[0] == "change-not-applied"
    assert answer.only[1].endswith("changed nothing: torch finds no GPU")


def test_cudnn_benchmark_and_a_program_that_switches_it_off(programs: Programs) -> None:
    on = programs.run("cudnn-benchmark", code="out['on'] = torch.backends.cudnn.benchmark", before=GPU)
    assert (on.out["on"], on.only[0]) == (True, "change-applied")
    off = programs.run("cudnn-benchmark", code="torch.backends.cudnn.benchmark = False", before=GPU)
    assert off.only == (
        "change-not-applied",
        "cudnn-benchmark changed nothing: the program has switched it off",
    )


SIZES = """
f = torch.compile(lambda x: x * x.shape[0], backend="eager")
out["values"] = [f(torch.ones(n)).sum().item() for n in (3, 4, 5)]
out["graphs"] = torch._dynamo.utils.counters["stats"]["unique_graphs"]
"""


@pytest.mark.thorough  # torch.compile takes seconds
def test_sizes_are_variable_from_the_first_compilation_on(programs: Programs) -> None:
    plain, changed = programs.run(code=SIZES), programs.run("compile-dynamic", code=SIZES)
    assert plain.out == {"values": [9.0, 16.0, 25.0], "graphs": 2}, "for 3, then for any size"
    assert changed.out == {"values": [9.0, 16.0, 25.0], "graphs": 1}
    assert changed.only == ("change-applied", "compile-dynamic: 1 graph compiled with variable sizes")


@pytest.mark.thorough  # torch.compile takes seconds
def test_sizes_are_variable_also_where_the_program_says_that_they_are_not(programs: Programs) -> None:
    fixed = SIZES.replace("backend=", "dynamic=False, backend=")
    plain, changed = programs.run(code=fixed), programs.run("compile-dynamic", code=fixed)
    assert (plain.out["graphs"], changed.out["graphs"]) == (3, 1)
    assert changed.out["values"] == plain.out["values"]


def test_a_program_that_compiles_nothing(programs: Programs) -> None:
    assert programs.run("compile-dynamic", code="").only == (
        "change-not-applied",
        "compile-dynamic changed nothing: the program compiled nothing",
    )
