"""The ``docker run`` line of a container."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.backends.docker.cli_args import docker_run
from profrun.backends.docker.request import container
from profrun.backends.docker.sdk_args import sdk_arguments
from profrun.jobs.model import Job
from profrun.plans.model import Plan, Trial
from profrun.store.runs import Run
from tests.backends.docker.containers import CPU, asked, options_of


def test_the_whole_line_of_a_cpu_trial() -> None:
    assert (
        docker_run(asked())
        == """docker run \\
  --rm \\
  --init \\
  --name profrun-t-0a1b-000-a-none-r1-65edd1 \\
  --hostname profrun \\
  --user 1001:1002 \\
  --cap-drop ALL \\
  --security-opt no-new-privileges \\
  --network none \\
  --read-only \\
  --tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777,size=8589934592 \\
  --shm-size 17179869184 \\
  --ulimit memlock=-1:-1 \\
  --ulimit stack=67108864:67108864 \\
  --log-driver json-file \\
  --log-opt max-size=10m \\
  --stop-timeout 80 \\
  --label profrun.path=/runs/t-0a1b/trials/000-a-none-r1 \\
  --label profrun.role=trial \\
  --label profrun.run=t-0a1b \\
  --label profrun.trial=000-a-none-r1 \\
  --env HOME=/tmp \\
  --env LOGNAME=ada \\
  --env NVIDIA_VISIBLE_DEVICES=void \\
  --env USER=ada \\
  --mount type=bind,source=/home/ada/work,target=/home/ada/work,readonly \\
  --mount type=bind,source=/runs/t-0a1b/bundle,target=/runs/t-0a1b/bundle,readonly \\
  --mount type=bind,source=/runs/t-0a1b/trials/000-a-none-r1,target=/runs/t-0a1b/trials/000-a-none-r1 \\
  --workdir /runs/t-0a1b/trials/000-a-none-r1 \\
  --entrypoint python3 \\
  img:1 \\
  /runs/t-0a1b/bundle/run.py /runs/t-0a1b/trials/000-a-none-r1"""
    )


def test_secrets_are_names_never_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    what = asked(secrets=("HF_TOKEN",), env_file="private.env")
    said = docker_run(what) + json.dumps(sdk_arguments(what))
    assert "hf_very_secret" not in said
    assert "--env HF_TOKEN" in options_of(docker_run(what))
    assert "--env-file /home/ada/work/private.env" in options_of(docker_run(what))


@given(st.text("ab, \"'$\\:=é", min_size=1, max_size=12).filter(lambda text: text.strip("/. ")))
def test_line_and_body_say_the_same_whatever_the_paths(name: str) -> None:
    """The line, read back as a shell and docker's CSV do, gives the SDK's arguments."""
    trial = Trial(0, "000-a-none-r1", "a", {}, "none", False, 1, ("x",))
    run = Run(Path("/runs") / name / "r-1")
    what = container(Plan(Job(name="j", command="x"), (trial,)), trial, run, Path("/src") / name, CPU, "i")
    words = shlex.split(docker_run(what).replace(" \\\n", " "))
    mounts = []
    for at, word in enumerate(words):
        if word == "--mount":
            fields = next(csv.reader([words[at + 1]]))
            pairs = dict(field.partition("=")[::2] for field in fields)
            mounts.append(
                {
                    "Type": "bind",
                    "Source": pairs["source"],
                    "Target": pairs["target"],
                    "ReadOnly": "readonly" in pairs,
                }
            )
    asked_for = sdk_arguments(what)
    assert mounts == asked_for["host_config"]["mounts"]
    assert words[words.index("i") + 1 :] == asked_for["create"]["command"]
    assert words[words.index("--workdir") + 1] == asked_for["create"]["working_dir"]
