"""Trials of many ranks on a real Slurm: the in-job part on the nodes, traces made on a node."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from profrun.contract.paths import TrialPaths
from profrun.runner.trial_files import normalise
from profrun.store.runs import Run
from profrun.store.state import read_trial
from profrun.traces.schema import TABLES
from profrun.traces.trace import Trace
from tests.real.slurm.conftest import Desk, wait_for
from tests.real.slurm.test_runs import WORK, spec

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]


def test_the_in_job_part_of_many_ranks_lies_on_the_nodes_and_is_removed_at_the_end(desk: Desk) -> None:
    desk.write(
        "work.py",
        "import os\n"
        "if os.environ['PET_NODE_RANK'] == os.environ['SLURM_NODEID']:\n"
        "    print(os.environ['PYTHONPATH'], os.environ['SLURM_NODEID'], flush=True)\n",
    )
    # The nodes have four cores: a stand-in for a launcher, which would start eight ranks on each.
    launcher = desk.write("torchrun", '#!/bin/sh\nexec python3 "$@"\n', 0o755)
    document = desk.submit(
        spec(
            f"{launcher} work.py",
            "collectors: [none]\ncluster: {partition: gpu}\n"
            "resources: {nodes: 2, ranks_per_node: 8, timeout: 60s}",
        )
    )
    (trial,) = document["trials"]
    assert trial["state"] == "finished", trial
    folder = desk.run_folder() / "trials" / trial["trial"]
    said = [path.read_text().split() for path in folder.glob("stdout*.log")]
    places = {(Path(paths.split(":")[0]), node) for paths, node in said}
    assert {node for _, node in places} == {"0", "1"}
    for site, node in places:
        assert re.fullmatch(rf"/tmp/profrun-\d+\.\d+\.{node}/site", str(site))
        wait_for(lambda copy=site.parent: not copy.exists())


def test_traces_are_made_on_a_node_where_the_job_says_so(desk: Desk) -> None:
    desk.write("work.py", WORK)
    document = desk.submit(
        spec(
            f"{sys.executable} work.py 8",
            "collectors: [none, torch]\ncluster: {partition: gpu, normalize: node}\n"
            "resources: {nodes: 2, timeout: 120s}",
        )
    )
    trials = desk.run_folder() / "trials"
    jobs = (desk.cluster.base / "log/jobcomp.txt").read_text()
    made = [line for line in jobs.splitlines() if "Name=profrun-trace" in line]
    assert [re.search(r"JobState=(\w+)", line)[1] for line in made] == ["COMPLETED"] * 2, jobs  # type: ignore[index]
    for trial in document["trials"]:
        assert (trial["state"], trial["trace_error"]) == ("finished", None), trial
        paths = TrialPaths(trials / trial["trial"])
        with Trace(paths.trace) as trace:
            assert trace.sql("SELECT DISTINCT rank FROM processes ORDER BY 1").rows == [(0,), (1,)]
            meta = {**trace.meta, "files": None}
            rows = {name: trace.sql(f'FROM "{name}"').rows for name in TABLES}
        record = read_trial(Run(desk.run_folder()), trial["trial"])
        shutil.rmtree(paths.trace)
        assert normalise(Run(desk.run_folder()), record).error is None
        with Trace(paths.trace) as trace:
            assert {**trace.meta, "files": None} == meta
            assert {name: trace.sql(f'FROM "{name}"').rows for name in TABLES} == rows
