"""Names, files and questions of the jobs that come with profrun."""

from __future__ import annotations

import pytest

from profrun.jobs.examples import names, path_of, question
from tests.conftest import ROOT


def test_the_examples_are_the_specs_in_the_folder_of_the_jobs() -> None:
    found = names()
    assert found == sorted(found)
    assert {"matmul_add", "mlp", "ddp"} <= set(found)
    assert all(path_of(name).samefile(ROOT / "jobs" / f"{name}.yaml") for name in found)


def test_a_question_may_have_two_lines() -> None:
    assert question("linear") == (
        "One linear layer, eager and compiled: is there anything left for torch.compile to fuse?"
    )
    assert question("mlp").endswith("What is fused, what is new for another number of rows?")


@pytest.mark.parametrize("name", names())
def test_every_example_begins_with_its_question(name: str) -> None:
    asked = question(name)
    assert asked.endswith((".", "?"))
    assert len(asked) < 160
