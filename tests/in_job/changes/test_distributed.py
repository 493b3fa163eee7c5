"""The size of buckets, in a real DistributedDataParallel of one process."""

from __future__ import annotations

from tests.in_job.changes.conftest import Programs

DDP = """
import os, tempfile, torch.distributed as dist
file = tempfile.NamedTemporaryFile()
dist.init_process_group("gloo", init_method=f"file://{file.name}", rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2), None, bucket_cap_mb=7)
out["bytes"] = model.bucket_bytes_cap
model(torch.ones(2)).sum().backward()
dist.destroy_process_group()
"""


def test_buckets_have_the_size_of_the_change(programs: Programs) -> None:
    plain, changed = programs.run(code=DDP), programs.run("bucket-size=50", code=DDP)
    assert (plain.out["bytes"], changed.out["bytes"]) == (7 << 20, 50 << 20)
    assert changed.only == (
        "change-applied",
        "bucket-size=50: 1 DistributedDataParallel got buckets of 50 MB",
    )


def test_a_program_without_it(programs: Programs) -> None:
    assert programs.run("bucket-size", code="").only == (
        "change-not-applied",
        "bucket-size=100 changed nothing: the program made no DistributedDataParallel",
    )
