"""What Slurm says of ranks, as torch.distributed reads it."""

from __future__ import annotations

from profrun.contract.recording import Rank
from profrun.in_job import launch, process_rank


def test_slurm_ranks_reach_torch() -> None:
    env = {
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
        "SLURM_NTASKS": "4",
        "SLURM_JOB_ID": "77",
        "SLURM_JOB_NODELIST": "gpu[007-010,12]",
    }
    launch.slurm_ranks(env)
    assert {
        name: env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    } == {
        "RANK": "3",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "MASTER_ADDR": "gpu007",
        "MASTER_PORT": "20077",
    }
    assert process_rank.from_environ(env) == Rank(3, 1, 4)
    assert [launch.first_host(nodes) for nodes in ("n1", "n[3-5],m", "a,b", "")] == [
        "n1",
        "n3",
        "a",
        "127.0.0.1",
    ]
