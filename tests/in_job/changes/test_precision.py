"""TF32 for matrix products, in real torch on the CPU, which is told that there is a GPU."""

from __future__ import annotations

import pytest

from tests.in_job.changes.conftest import Programs

GPU = "torch.cuda.is_available = lambda: True"
STATE = """
out["on"] = torch.backends.cuda.matmul.allow_tf32
out["precision"] = torch.get_float32_matmul_precision()
"""


@pytest.mark.parametrize(
    ("code", "ignored"),
    [
        ("", ""),
        ("torch.set_float32_matmul_precision('highest')", ", and 1 call for more bits did nothing"),
        ("torch.backends.cuda.matmul.allow_tf32 = False", ", and 1 call for more bits did nothing"),
        ("torch.backends.cuda.matmul.fp32_precision = 'ieee'", ", and 1 call for more bits did nothing"),
        ("torch.backends.fp32_precision = 'ieee'", ""),
        ("torch.set_float32_matmul_precision('high')", ""),
        ("torch.backends.cuda.matmul.allow_tf32 = True", ""),
    ],
)
def test_products_use_tf32_whatever_the_program_asks_for(programs: Programs, code: str, ignored: str) -> None:
    answer = programs.run("tf32", code=code + STATE, before=GPU)
    assert answer.out == {"on": True, "precision": "high"}
    assert answer.only == (
        "change-applied",
        f"tf32: matrix products of fp32 tensors may run in TF32{ignored}",
    )


def test_a_program_may_ask_for_fewer_bits(programs: Programs) -> None:
    code = "torch.set_float32_matmul_precision('medium')" + STATE
    assert programs.run("tf32", code=code, before=GPU).out == {"on": True, "precision": "medium"}


def test_other_settings_of_the_program_stay(programs: Programs) -> None:
    code = "torch.backends.cudnn.allow_tf32 = False; out['on'] = torch.backends.cudnn.allow_tf32"
    answer = programs.run("tf32", code=code, before=GPU)
    assert (answer.out["on"], answer.only[0]) == (False, "change-applied")


def test_without_a_gpu_nothing_is_set(programs: Programs) -> None:
    answer = programs.run("tf32", code=STATE)
    assert answer.out == {"on": False, "precision": "highest"}
    assert answer.only == ("change-not-applied", "tf32 changed nothing: torch finds no GPU")
