"""Settings of a cluster: profiles, GPU types, launchers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profrun.backends.cluster import gpus_per_node, is_launcher, profiles_file, settle, vendor_of
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.load import load_text
from profrun.plans.make import make_plan

PLAN = make_plan(load_text("name: t\ncommand: python x.py\ncluster: {profile: big, partition: mine}\n"))


@pytest.mark.parametrize(
    ("around", "path"),
    [
        ({"PROFRUN_CLUSTERS": "/c.yaml", "XDG_CONFIG_HOME": "/x"}, "/c.yaml"),
        ({"XDG_CONFIG_HOME": "/x"}, "/x/profrun/clusters.yaml"),
    ],
)
def test_where_the_profiles_are(around: dict[str, str], path: str) -> None:
    assert profiles_file(around) == Path(path)


def test_the_job_wins_over_its_profile(tmp_path: Path) -> None:
    file = tmp_path / "clusters.yaml"
    file.write_text("big: {partition: theirs, gpu_type: h200}\n")
    assert settle(PLAN, file).job.cluster == ClusterSettings(partition="mine", gpu_type="h200")
    file.write_text("small: {}\n")
    with pytest.raises(UsageError, match="no cluster profile 'big'; it has small"):
        settle(PLAN, file)
    with pytest.raises(UsageError, match=r"there is no .*none\.yaml"):
        settle(PLAN, tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("settings", "vendor"),
    [
        (ClusterSettings(vendor="amd", gpu_type="h200"), "amd"),
        (ClusterSettings(gpu_type="MI300X"), "amd"),
        (ClusterSettings(gpu_type="h200"), "nvidia"),
        (ClusterSettings(gpu_type="tpu"), "auto"),
    ],
)
def test_the_vendor_of_a_gpu_type(settings: ClusterSettings, vendor: str) -> None:
    assert vendor_of(settings, PLAN) == vendor


def test_gpus_are_one_for_each_rank_where_the_cluster_has_some() -> None:
    job = load_text("name: t\ncommand: python x.py\nresources: {ranks_per_node: 4}\n")
    assert gpus_per_node(job, ClusterSettings()) == 0
    assert gpus_per_node(job, ClusterSettings(gpu_type="h200")) == 4
    stated = replace(job, resources=replace(job.resources, gpus=2))
    assert gpus_per_node(stated, ClusterSettings()) == 2
    named = replace(job, resources=replace(job.resources, gpus=(2, 3)))
    with pytest.raises(UsageError, match=r"gpus is \[2, 3\], and on a cluster .* write gpus: 2"):
        gpus_per_node(named, ClusterSettings())


@pytest.mark.parametrize(
    ("argv", "launcher"),
    [
        (("torchrun", "x.py"), True),
        (("/opt/bin/torchrun", "x.py"), True),
        (("python", "-m", "torch.distributed.run", "x.py"), True),
        (("python", "torchrun"), False),
    ],
)
def test_what_starts_its_ranks_itself(argv: tuple[str, ...], launcher: bool) -> None:
    assert is_launcher(replace(PLAN.trials[0], argv=argv)) is launcher
