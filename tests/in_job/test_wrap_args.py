"""The command line of ``profrun wrap``: what becomes of it, and what is refused."""

from __future__ import annotations

import pytest

from profrun.contract.command import Command
from profrun.contract.schedule import Schedule
from profrun.in_job.wrap_args import WrapArgs, WrapError, read_args
from profrun.jobs.load import load_text
from profrun.plans.make import make_command, make_plan


def read(*words: str, **environ: str) -> WrapArgs:
    return read_args("profrun wrap", ["--out", "runs/a b", *words, "--", "python", "x.py"], environ, "/w")


def test_the_least_that_can_be_given() -> None:
    args = read()
    assert (args.out, args.rank, args.world_size, args.launch, args.dry_run) == (
        "/w/runs/a b",
        None,
        None,
        None,
        False,
    )
    command = args.command
    assert (command.argv, command.cwd, command.run, command.job) == (("python", "x.py"), "/w", "a b", "a-b")
    assert (command.collector, command.profiler, command.variant) == ("torch", "torch", "default")
    assert command.schedule == Schedule(wait=1)


def test_the_same_keys_as_of_a_job_give_the_same_command() -> None:
    spec = (
        "name: a-b\ncommand: python x.py\ncollectors: [torch]\nranks: [0, 8]\nsample: off\n"
        "schedule: {active: 5, warmup: 2, max_size: 1GiB}\nranges: {steps: optimizer, modules: 2}\n"
        "resources: {timeout: 2h, grace: 30s}\ntorch: {with_stack: true, record_shapes: false}\n"
        "secrets: [HF_TOKEN]\nlaunch_blocking: 'on'\n"
    )
    plan = make_plan(load_text(spec))
    wanted = make_command(plan, plan.trials[0], "a b", cwd="/w")
    found = read(
        *("--steps", "5", "--set", "schedule.warmup=2", "--set", "schedule.max_size=1GiB", "--blocking"),
        *("--set", "ranges.steps=optimizer", "--set", "ranges.modules=2", "--set", "sample=off"),
        *("--set", "resources.timeout=2h", "--set", "resources.grace=30s", "--set", "ranks=[0, 8]"),
        *("--set", "torch.with_stack=true", "--set", "torch.record_shapes=false", "--secret", "HF_TOKEN"),
    ).command
    same = [
        name
        for name in vars(wanted)
        if name not in ("trial", "env", "timeout_s") and getattr(found, name) == getattr(wanted, name)
    ]
    assert set(vars(wanted)) - set(same) == {"trial", "env", "timeout_s"}
    assert found.timeout_s == wanted.timeout_s == 7200


def test_without_a_time_limit_there_is_none() -> None:
    """The launcher has its own."""
    assert read().command.timeout_s is None


def test_a_neutral_collector_takes_the_options_of_each_that_it_may_become() -> None:
    plan = make_plan(load_text("name: j\ncommand: x\ncollectors: [counters, timeline]\nncu: {set: full}\n"))
    counters, timeline = (make_command(plan, trial, "r") for trial in plan.trials)
    found = read("-c", "counters", "--set", "ncu.set=full").command
    assert (found.profiler, found.options) == (None, counters.options)
    assert read("-c", "timeline").command.options == timeline.options


def test_variants() -> None:
    def named(*given: str) -> tuple[str, dict[str, object]]:
        command = read(*(word for text in given for word in ("--variant", text))).command
        return command.variant, command.values

    assert named("lr=0.1", "bs=8") == ("lr_0.1-bs_8", {"lr": 0.1, "bs": 8})
    assert named("fused") == ("fused", {})
    assert named("new", "lr=1") == ("new-lr_1", {"lr": 1})


def test_what_tells_launches_apart_comes_from_the_option_or_the_environment() -> None:
    assert read(PROFRUN_LAUNCH="a").launch == "a"
    assert read("--launch", "b", PROFRUN_LAUNCH="a").launch == "b"
    assert read(PROFRUN_LAUNCH="").launch is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "tourch"], "unknown collector 'tourch': it is one of none, torch, nsys, ncu, rocprof, "),
        (["--set", "schedule.activ=1"], "schedule has no key 'activ'; it has wait, warmup, active, repeat"),
        (["--set", "schedule.active=0"], "--set schedule.active=0: write a whole number from 1 on"),
        (["--set", "schedule.active"], "--set schedule.active: write KEY=VALUE"),
        (["--set", "nsys.trace=cuda"], "the collector is torch, so an option of nsys has no effect"),
        (["--set", "env.A=b"], "a wrapped command has no such key; there are resources.timeout, "),
        (["--set", "torch=1"], "a wrapped command has no such key"),
        (["--set", "sample=200"], "write a number from 0 to 100, or off"),
        (["--set", "sample=fast"], "write a number from 0 to 100, or off"),
        (["--steps", "x"], "--set schedule.active=x: write a whole number from 1 on"),
        (["--rank", "-1"], "--rank -1: write a whole number from 0 to 1000000"),
        (["--variant", "a=1", "--variant", "a=2"], "--variant a=2: a is given twice"),
        (["--variant", "../x"], "'../x' cannot be the name of a folder"),
        (["--name", "a b"], "--name a b cannot be the name of a job"),
        (["--unknown"], "unrecognized arguments: --unknown"),
        (["-c", "timeline", "--set", "rocprof.pmc=[[A]]"], "makes kernels run one at a time"),
    ],
)
def test_what_cannot_be_used_is_said(words: list[str], said: str) -> None:
    with pytest.raises(WrapError) as caught:
        read(*words)
    assert said in str(caught.value)


def test_a_command_must_be_given_and_keeps_its_own_dashes() -> None:
    for words in (["--out", "x"], ["--out", "x", "--"]):
        with pytest.raises(WrapError, match="no command is given"):
            read_args("p", words, {}, "/")
    found = read_args("p", ["-o", "x", "--", "a", "--", "--rank", "3"], {}, "/")
    assert (found.command.argv, found.rank) == (("a", "--", "--rank", "3"), None)
    assert isinstance(found.command, Command)
