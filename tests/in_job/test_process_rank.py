"""The rank of a process by its launcher."""

from __future__ import annotations

from profrun.contract.recording import Rank
from profrun.in_job import process_rank


def test_torchruns_rank_wins_over_slurms() -> None:
    assert process_rank.from_environ({"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "1"}) == Rank(5, 0, 8)
    assert process_rank.from_environ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}).rank == 2
    assert process_rank.from_environ({}) == Rank()
