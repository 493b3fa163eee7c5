"""What of a plan may be shown and kept."""

from __future__ import annotations

import pytest

from profrun.jobs.load import load_text
from profrun.plans.make import make_plan
from profrun.plans.public import hidden_in, redactor_of, secrets_of


@pytest.mark.parametrize(
    ("cluster", "secrets"),
    [
        ("{setup: ['export MY_TOKEN=abcdEF1234', 'module load cuda']}", ("abcdEF1234",)),
        (
            "{pod_patch: {spec: {containers: [{env: [{name: MY_PASSWORD, value: abcdEF1234}]}]}}}",
            ("abcdEF1234",),
        ),
        ("{sites: {a: {extra: ['--comment=password=abcdEF1234']}}}", ("abcdEF1234",)),
        ("{tolerations: [{key: nvidia.com/gpu, operator: Exists}]}", ()),
        ("{image_pull_secrets: [registry-login]}", ()),
    ],
)
def test_secrets_that_go_to_a_cluster_are_known_and_its_words_are_none(
    cluster: str, secrets: tuple[str, ...]
) -> None:
    plan = make_plan(load_text(f"name: t\ncommand: python x.py\ncluster: {cluster}\n"))
    assert secrets_of(plan) == secrets
    assert redactor_of(plan).text("a abcdEF1234 key: nvidia.com/gpu") == (
        "a <redacted> key: nvidia.com/gpu" if secrets else "a abcdEF1234 key: nvidia.com/gpu"
    )


def test_a_plan_whose_cluster_lacks_its_secret_cannot_be_run() -> None:
    job = "name: t\ncommand: python x.py\ncluster: {setup: ['export MY_TOKEN=<redacted>']}\n"
    assert hidden_in(make_plan(load_text(job)))
    assert not hidden_in(make_plan(load_text(job.replace("<redacted>", "$OTHER"))))
