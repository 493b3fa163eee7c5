"""The name of a node."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from profrun.in_job.node import node_names


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({"PROFRUN_NODE": "gke-a100-0", "HOSTNAME": "trial-0"}, ("gke-a100-0",)),
        ({"SLURMD_NODENAME": "n1"}, ("n1",)),
        ({"HOSTNAME": "laptop"}, ()),
        ({"PROFRUN_NODE": ""}, ()),
    ],
)
def test_only_a_cluster_names_nodes(environ: Mapping[str, str], names: tuple[str, ...]) -> None:
    assert node_names(environ) == names
