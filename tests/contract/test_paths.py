"""The names in a trial's folder."""

from __future__ import annotations

from pathlib import Path

from profrun.contract.paths import TrialPaths


def test_steps_are_those_of_the_ranks_that_wrote_them(tmp_path: Path) -> None:
    trial = TrialPaths(tmp_path)
    for rank in (1, 0, 2):
        trial.rank(rank).mkdir(parents=True)
    for rank in (1, 0):
        (trial.rank(rank) / "steps.json").touch()
    assert trial.steps() == [tmp_path / "raw/rank0/steps.json", tmp_path / "raw/rank1/steps.json"]


def test_no_two_files_share_a_name() -> None:
    trial = TrialPaths(Path("/t"))
    names = [name for name, found in vars(TrialPaths).items() if isinstance(found, property)]
    assert len({getattr(trial, name) for name in names}) == len(names) == 13


def test_samples_are_those_of_the_hosts_that_wrote_them(tmp_path: Path) -> None:
    trial = TrialPaths(tmp_path)
    for host in ("n2", "n1.cluster"):
        trial.samples_of(host).touch()
    assert trial.samples() == [tmp_path / "samples.n1.cluster.jsonl", tmp_path / "samples.n2.jsonl"]
