"""The dump of any job is a spec of the same job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from profrun.jobs.dump import dump_job
from profrun.jobs.load import load_job, load_text
from profrun.plans.make import make_plan
from tests.conftest import examples
from tests.jobs.specs import JOBS, jobs, spec_of


@given(jobs())
@examples(30, 2000)
def test_a_dump_is_a_spec_of_the_same_job(data: dict[str, Any]) -> None:
    job = load_text(spec_of(data))
    text = dump_job(job)
    again = load_text(text)
    assert again == job
    assert dump_job(again) == text
    assert make_plan(again).trials == make_plan(job).trials
    assert yaml.safe_load(text)["variants"].keys() == job.variants.keys()  # other YAML readers see the same


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_our_jobs_come_back(path: Path) -> None:
    job = load_job(path)
    assert load_text(dump_job(job)) == job


def test_blocks_of_profilers_and_of_a_cluster_come_back_as_they_were_given() -> None:
    spec = """name: x
command: run
collectors: [timeline]
nsys: {delay: 5s, duration: 1.5s, args: []}
timeline: {nsys: {sample: none}}
sample: off
ranks: [0, 8]
cluster:
  time: 1h
  tolerations: [{key: gpu, seconds: 5}]
  pod_patch: {spec: {priority: null, nodeName: "1", hostAliases: [{ip: 10.0.0.1, hostnames: [a, "no"]}]}}
  sites: {a: {ttl: 60, vendor: amd}, b: {labels: {disk: nvme}}}
"""
    job = load_text(spec)
    again = dump_job(job)
    assert load_text(again) == job
    data = yaml.safe_load(again)
    assert data["nsys"] == {"delay": 5, "duration": 1.5, "args": []}
    assert data["timeline"] == {"nsys": {"sample": "none"}}
    assert data["cluster"] == {
        "time": 3600,
        "tolerations": [{"key": "gpu", "seconds": 5}],
        "pod_patch": {
            "spec": {
                "priority": None,
                "nodeName": "1",
                "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "no"]}],
            }
        },
        "sites": {"a": {"ttl": 60, "vendor": "amd"}, "b": {"labels": {"disk": "nvme"}}},
    }
