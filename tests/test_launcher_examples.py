"""The manifests in docs/examples are what their APIs take, and their commands what ``profrun wrap`` reads."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from profrun.in_job.launchers import launch_of
from profrun.in_job.wrap import ask
from profrun.in_job.wrap_args import read_args
from tests.conftest import ROOT

FOLDER = ROOT / "docs/examples"
MODELS = {
    "TrainJob": "TrainerV1alpha1TrainJob",
    "TrainingRuntime": "TrainerV1alpha1TrainingRuntime",
    "JobSet": "JobsetV1alpha2JobSet",
}
"""Kind -> name of the model that Kubeflow Trainer's API package generates from the Go types of its CRDs."""
Manifest = dict[str, Any]
KUBERNETES = "1.31"
"""A version whose schema of Jobs the checks below use."""
MAIN = "trainjob.yaml", "jobset.yaml", "mpi.yaml"


def manifests(name: str) -> list[Manifest]:
    """The documents of an example."""
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def as_api(document: Manifest) -> Manifest:
    """The document as the API keeps it: what its schema does not know is gone.

    Raises:
        ValueError: a value has another type, or a field that must be there is missing.
    """
    import kubeflow_trainer_api.models as api  # a second of models, which only these tests pay

    found = getattr(api, MODELS[document["kind"]]).from_dict(document)
    assert found is not None
    kept: Manifest = found.to_dict()
    return kept


def test_every_example_is_checked() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(MAIN)


@pytest.mark.parametrize("name", MAIN)
def test_the_api_takes_every_field(name: str) -> None:
    for document in manifests(name):
        assert as_api(document) == document


def test_a_field_that_the_api_does_not_know_is_found() -> None:
    (jobset,) = manifests("jobset.yaml")
    wrong = copy.deepcopy(jobset)
    wrong["spec"]["replicatedJobs"][0]["template"]["spec"]["completion"] = 2
    assert as_api(wrong) != wrong
    wrong = copy.deepcopy(jobset)
    wrong["spec"]["replicatedJobs"][0]["replicas"] = "one"
    with pytest.raises(ValueError, match="replicas"):
        as_api(wrong)


def jobs(document: Manifest) -> Iterator[Manifest]:
    """The Jobs that a JobSet, or a runtime's, is made of."""
    spec = document["spec"] if document["kind"] == "JobSet" else document["spec"]["template"]["spec"]
    for one in spec["replicatedJobs"]:
        yield one["template"]["spec"]


@pytest.mark.parametrize("name", MAIN)
def test_its_jobs_are_what_kubernetes_takes(name: str) -> None:
    """The strict schema of Kubernetes itself, for the Jobs inside; their restart policy may come later."""
    import kubernetes_validate

    seen = 0
    for document in manifests(name):
        if document["kind"] == "TrainJob":
            continue
        for spec in jobs(document):
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}
            kubernetes_validate.validate(job, KUBERNETES, strict=True)
            seen += 1
    assert seen


def started(name: str) -> tuple[list[str], dict[str, str]]:
    """The command line that is started in every rank, and the variables that the manifest gives."""
    document = manifests(name)[-1]
    if document["kind"] == "JobSet":
        (spec,) = jobs(document)
        container = spec["template"]["spec"]["containers"][0]
    else:
        container = document["spec"]["trainer"]
    env = {item["name"]: item.get("value", "") for item in container.get("env", ())}
    words = [*container["command"], *container["args"]]
    return words[words.index("/shared/wrap.pyz") + 1 :], env


@pytest.mark.parametrize("name", MAIN)
def test_its_command_line_is_one_of_profrun_wrap(name: str) -> None:
    words, _ = started(name)
    args = read_args("wrap.pyz", words, {}, "/")
    assert args.command.argv[-1] == "/shared/train.py"
    assert Path(args.out).is_relative_to("/shared/runs")


def test_both_pods_of_the_jobset_agree() -> None:
    """With what Kubernetes puts in for the references: the index of the pod, the id of the JobSet."""
    words, env = started("jobset.yaml")
    env |= {"JOBSET_UID": "77aa", "JOBSET_RESTART": "0"}
    env["PROFRUN_LAUNCH"] = re.sub(r"\$\((\w+)\)", lambda found: env[found[1]], env["PROFRUN_LAUNCH"])
    found = [
        ask(read_args("wrap.pyz", words, {**env, "PET_NODE_RANK": rank}, "/"), {**env, "PET_NODE_RANK": rank})
        for rank in ("0", "1")
    ]
    assert [(one.own.rank, one.own.world_size, one.launch) for one in found] == [
        (0, 2, "77aa.0"),
        (1, 2, "77aa.0"),
    ]
    assert launch_of(env) is None, "so the manifest must give it"


@pytest.mark.parametrize("name", MAIN)
def test_the_page_names_the_example(name: str) -> None:
    assert f"(examples/{name})" in (ROOT / "docs/wrap.md").read_text()
