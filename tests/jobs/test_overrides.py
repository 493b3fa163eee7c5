"""Values of ``--set`` laid over a spec."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.profilers import profiler
from profrun.errors import UsageError
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.kinds import QUOTE
from profrun.jobs.load import load_text
from profrun.jobs.overrides import Override
from tests.conftest import examples
from tests.jobs.specs import BASE, errors_of, load_small


def test_overrides_are_laid_over_in_order() -> None:
    job = load_small(
        "variants: {v1.5: {n: 1}}\nexpect: [{step_ms: 1}]",
        "run {n}",
        "variants.v1.5.n=8",
        "repeats=2",
        "repeats=3",
        "collectors=[none]",
        "torch.with_stack=true",
        "expect.0.step_ms=5",
        "env.A='{n}'",
        "cluster.labels.example.org/team=a",
        "cluster.pod_resources.vpc.amazonaws.com/efa=4",
        "cluster.pod_patch.spec.hostNetwork=true",
        "resources.shm=",
    )
    assert job.variants == {"v1.5": {"n": 8}}
    assert (job.repeats, job.collectors, job.env, job.resources.shm) == (3, ("none",), {"A": "{n}"}, None)
    assert job.options["torch"] == profiler("torch").options(with_stack=True)
    assert job.expect[0].checks == {"step_ms": 5.0}
    assert job.cluster == ClusterSettings(
        labels={"example.org/team": "a"},
        pod_resources={"vpc.amazonaws.com/efa": "4"},
        pod_patch={"spec": {"hostNetwork": True}},
    )


def test_an_override_of_another_option_is_named_as_it_was_typed() -> None:
    given = Override("collectors=[none, nsy]", "--collectors none,nsy")
    with pytest.raises(UsageError) as caught:
        load_text("name: t\ncommand: x\n", "job.yaml", [given])
    assert str(caught.value) == "--collectors none,nsy: collectors: 'nsy' is not known; did you mean 'nsys'?"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("repeats", "is not 'path=value'; write one like --set repeats=3"),
        ("=3", "is not 'path=value'; write one like --set repeats=3"),
        ("a..b=3", "is not 'path=value'; write one like --set repeats=3"),
        ("repeat=3", "unknown key 'repeat'; did you mean 'repeats'?"),
        ("repeats=x", "repeats: 'x' is no whole number; write a whole number from 1 to 1000"),
        ("repeats=", "repeats: nothing is given; write a whole number from 1 to 1000"),
        ("repeats=[1", "a list that starts with '[' is not closed; add ']' or the missing ','"),
        ("variants.b.n=1", "there is no variant 'b'; variants: a"),
        ("variants.a.n.m=1", "variants.a.n holds no keys; set variants.a.n itself"),
        ("collectors.5=none", "collectors has no item '5'; items are 0 to 0; or set the whole list"),
        ("collectors.0=nsy", "collectors: 'nsy' is not known; did you mean 'nsys'?"),
        ("env.A={n}", f"env.A: a mapping does not fit; write text or a number ({QUOTE})"),
        ("command=run {m}", "command: no variant has a value for {m}; values are: n"),
        ("schedule.activ=1", "schedule: unknown key 'activ'; did you mean 'active'?"),
    ],
)
def test_wrong_overrides(override: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_small("variants: {a: {n: 1}}\ncollectors: [none]", "run {n}", override)
    assert str(caught.value) == f"--set {override}: {said}"


@given(st.text(max_size=30), st.text(max_size=30))
@examples(40, 2000)
def test_any_override_applies_or_says_why(path: str, value: str) -> None:
    for override in (f"{path}={value}", path, f"repeats={value}", f"variants.every-step.{path}={value}"):
        for line in errors_of(BASE, override):
            assert line.startswith(("--set", "job.yaml:")), line
