"""The jobs that come with profrun: what is in each, and which files a copy consists of."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.errors import UnavailableError, UsageError
from profrun.jobs.load import load_job
from profrun.runner.examples import Copy, example, plan_copies, write_copies
from tests.conftest import ROOT


def test_what_is_in_an_example() -> None:
    found, job = example("ddp"), load_job(ROOT / "jobs/ddp.yaml")
    assert (found.variants, found.claims) == (6, len(job.expect))
    assert found.gpu_claims == sum(one.vendor == "nvidia" for one in job.expect)  # the others are of CPUs
    assert found.files == ("ddp.yaml", "workloads/ddp.py")  # behind torchrun and its options


def test_two_jobs_share_a_program(tmp_path: Path) -> None:
    copies = plan_copies([example("transformer"), example("transformer_ablation")], tmp_path)
    assert [str(copy.target.relative_to(tmp_path)) for copy in copies] == [
        "transformer.yaml",
        "workloads/transformer.py",
        "transformer_ablation.yaml",
    ]
    assert copies[1].text == (ROOT / "jobs/workloads/transformer.py").read_text()
    assert list(tmp_path.iterdir()) == []  # nothing is written yet


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no example 'linar'; did you mean 'linear'"):
        example("linar")


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    copies = [Copy("a\n", tmp_path / "a"), Copy("b\n", tmp_path / "new/b")]
    (tmp_path / "a").write_text("a\n")
    assert write_copies(copies, force=False) == [tmp_path / "new/b"]
    assert (tmp_path / "new/b").read_text() == "b\n"


def test_where_one_file_differs_nothing_is_written(tmp_path: Path) -> None:
    copies = [Copy("a\n", tmp_path / "a"), Copy("b\n", tmp_path / "b")]
    (tmp_path / "b").write_text("mine\n")
    with pytest.raises(UsageError, match="b exists with another content; name another folder with --out DIR"):
        write_copies(copies, force=False)
    assert not (tmp_path / "a").exists()
    assert write_copies(copies, force=True) == [tmp_path / "a", tmp_path / "b"]
    assert (tmp_path / "b").read_text() == "b\n"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="cannot be made"):
        write_copies([Copy("a\n", tmp_path / "file/a")], force=False)
