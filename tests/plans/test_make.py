"""Spec -> trials: which, in which order, with which command and environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profrun.contract.codec import from_json, to_json
from profrun.contract.command import Command
from profrun.contract.profilers import profiler
from profrun.errors import UsageError
from profrun.jobs.load import load_text
from profrun.jobs.model import Job
from profrun.plans.bundle import write_bundle
from profrun.plans.make import make_command, make_plan, plan_file
from profrun.plans.model import read_plan_file

AB = "variants: {a: {n: 1}, b: {n: 2}}\n"


def job(more: str = AB, command: str = "run {n}") -> Job:
    return load_text(f"name: x\ncommand: {command}\n{more}")


def ids(made: Job, vendor: str = "auto") -> list[str]:
    return [trial.id for trial in make_plan(made, vendor=vendor).trials]


def test_variants_alternate_innermost_then_blocking_then_collectors_then_repeats() -> None:
    assert ids(job(AB + "launch_blocking: both\nrepeats: 2\n")) == [
        "000-a-none-r1",
        "001-b-none-r1",
        "002-a-none-blocking-r1",
        "003-b-none-blocking-r1",
        "004-a-torch-r1",
        "005-b-torch-r1",
        "006-a-torch-blocking-r1",
        "007-b-torch-blocking-r1",
        "008-a-none-r2",
        "009-b-none-r2",
        "010-a-none-blocking-r2",
        "011-b-none-blocking-r2",
        "012-a-torch-r2",
        "013-b-torch-r2",
        "014-a-torch-blocking-r2",
        "015-b-torch-blocking-r2",
    ]


def test_every_point_has_as_many_trials_as_repeats_and_is_spread_over_the_run() -> None:
    trials = make_plan(job(AB + "launch_blocking: both\nrepeats: 5\n")).trials
    points: dict[tuple[str, str, bool], list[int]] = {}
    for trial in trials:
        points.setdefault((trial.variant, trial.collector, trial.blocking), []).append(trial.index)
    assert len(points) == 8
    for indices in points.values():
        assert indices == list(range(indices[0], len(trials), 8))


def test_more_than_a_thousand_trials_still_sort_by_name() -> None:
    names = ids(job("repeats: 600\n", "run"))
    assert names == sorted(names)
    assert (names[0], names[-1]) == ("0000-default-none-r1", "1199-default-torch-r600")


def test_the_same_job_makes_the_same_plan() -> None:
    assert make_plan(job()) == make_plan(job())
    assert json.dumps(to_json(plan_file(make_plan(job())))) == json.dumps(
        to_json(plan_file(make_plan(job())))
    )


@pytest.mark.parametrize(
    ("vendor", "env"),
    [
        ("nvidia", {"CUDA_LAUNCH_BLOCKING": "1"}),
        ("amd", {"HIP_LAUNCH_BLOCKING": "1", "AMD_SERIALIZE_KERNEL": "3"}),
        ("auto", {}),  # the wrapper sets them: command.json says blocking
    ],
)
def test_blocking_variables_by_vendor(vendor: str, env: dict[str, str]) -> None:
    plan = make_plan(job("launch_blocking: both\ncollectors: [none]\nenv: {A: 1}\n", "run"), vendor=vendor)
    assert [dict(trial.env) for trial in plan.trials] == [{"A": "1"}, {"A": "1", **env}]
    assert [make_command(plan, trial, "r").blocking for trial in plan.trials] == [False, True]


@pytest.mark.parametrize(
    ("keys", "seed"),
    [
        ("", None),
        ("results: {}\n", None),
        ("results: {seed: 7}\n", "7"),
        ("results: {seed: 0}\n", "0"),
        ("results: {seed: 7}\nenv: {PYTHONHASHSEED: 1}\n", "1"),
    ],
)
def test_a_seed_of_results_is_also_that_of_pythons_hashes(keys: str, seed: str | None) -> None:
    trials = make_plan(job(f"{keys}collectors: [none]\n", "run")).trials
    assert [trial.env.get("PYTHONHASHSEED") for trial in trials] == [seed]


def test_without_a_gpu_no_launch_blocking_twin_is_planned() -> None:
    spec = AB + "launch_blocking: both\ncollectors: [none, torch]\nrepeats: 3\n"
    both, none = (make_plan(job(spec), vendor=vendor) for vendor in ("auto", "none"))
    assert (len(both.trials), both.left_out) == (24, ())
    assert none.left_out == ("12 launch-blocking twins left out: no GPU",)
    assert [trial.id for trial in none.trials] == [
        trial.id for trial in make_plan(job(spec.replace("both", "off")), vendor="none").trials
    ]
    assert make_plan(none.job, vendor=plan_file(none).vendor) == none  # as `profrun resume` plans it
    assert {make_command(none, trial, "r").vendor for trial in none.trials} == {"auto"}  # the job looks again


def test_launch_blocking_that_is_always_on_is_no_twin() -> None:
    plan = make_plan(job("launch_blocking: on\ncollectors: [none]\n", "run"), vendor="none")
    assert ([trial.blocking for trial in plan.trials], plan.left_out) == ([True], ())


def test_a_site_without_gpus_gets_no_twin() -> None:
    sites = "cluster: {sites: {cpu: {vendor: none}, gpu: {vendor: nvidia}}}\n"
    plan = make_plan(job("launch_blocking: both\ncollectors: [none]\n" + sites, "run"))
    assert [(trial.site, trial.blocking) for trial in plan.trials] == [
        ("cpu", False),
        ("gpu", False),
        ("gpu", True),
    ]
    assert plan.left_out == ("1 launch-blocking twin left out: no GPU",)


@pytest.mark.parametrize(
    ("vendor", "profilers"),
    [
        ("nvidia", ["nsys", "ncu"]),
        ("amd", ["rocprof", "rocprof"]),
        ("none", ["nsys", None]),
        ("auto", [None, None]),
    ],
)
def test_a_trial_keeps_its_collector_and_what_that_became(vendor: str, profilers: list[str | None]) -> None:
    trials = make_plan(job("collectors: [timeline, counters]\n", "run"), vendor=vendor).trials
    assert [trial.collector for trial in trials] == ["timeline", "counters"]
    assert [trial.profiler for trial in trials] == profilers
    assert [trial.id for trial in trials] == ["000-default-timeline-r1", "001-default-counters-r1"]


OPTIONS = """collectors: [timeline, counters, torch]
torch: {with_stack: true}
nsys: {sample: process-tree, capture: all}
rocprof: {kernels: gemm, pmc: [[A]]}
ncu: {set: full}
timeline: {nsys: {capture: window}}
counters: {ncu: {launch_count: 5}}
"""


@pytest.mark.parametrize(
    ("vendor", "options"),
    [
        (
            "nvidia",
            [
                {"nsys": {"sample": "process-tree", "capture": "window"}},
                {"ncu": {"set": "full", "launch_count": 5}},
                {"torch": {"with_stack": True}},
            ],
        ),
        (
            "amd",
            [
                {"rocprof": {"kernels": "gemm"}},
                {"rocprof": {"kernels": "gemm", "pmc": [["A"]]}},
                {"torch": {"with_stack": True}},
            ],
        ),
        (
            "auto",
            [
                {"nsys": {"sample": "process-tree", "capture": "window"}, "rocprof": {"kernels": "gemm"}},
                {"ncu": {"set": "full", "launch_count": 5}, "rocprof": {"kernels": "gemm", "pmc": [["A"]]}},
                {"torch": {"with_stack": True}},
            ],
        ),
    ],
)
def test_options_of_a_trial(vendor: str, options: list[dict[str, Any]]) -> None:
    assert [dict(trial.options) for trial in make_plan(job(OPTIONS, "run"), vendor=vendor).trials] == options


def test_counters_on_amd_have_passes_without_being_told() -> None:
    (trial,) = make_plan(job("collectors: [counters]\n", "run"), vendor="amd").trials
    assert trial.options == {"rocprof": to_json(profiler("rocprof").counters_defaults)}


def test_ncu_has_no_blocking_twin() -> None:
    assert ids(job("collectors: [none, ncu]\nlaunch_blocking: both\n", "run")) == [
        "000-default-none-r1",
        "001-default-none-blocking-r1",
        "002-default-ncu-r1",
    ]
    assert ids(job("collectors: [ncu]\nlaunch_blocking: on\n", "run")) == ["000-default-ncu-blocking-r1"]


def test_rocprof_has_a_blocking_twin_unless_it_counts() -> None:
    spec = "collectors: [rocprof]\nlaunch_blocking: both\n"
    assert ids(job(spec, "run"), "amd") == ["000-default-rocprof-r1", "001-default-rocprof-blocking-r1"]
    assert ids(job(spec + "rocprof: {pmc: [[SQ_WAVES]]}\n", "run"), "amd") == ["000-default-rocprof-r1"]


@pytest.mark.parametrize(
    ("collector", "vendor", "said"),
    [
        ("nsys", "amd", "'nsys' does not run on amd GPUs; use 'timeline', which fits either vendor"),
        ("ncu", "amd", "'ncu' does not run on amd GPUs; use 'counters', which fits either vendor"),
        (
            "rocprof",
            "nvidia",
            "'rocprof' does not run on nvidia GPUs; use 'timeline', which fits either vendor",
        ),
        ("none", "intel", "no vendor 'intel'; use one of auto, nvidia, amd, none"),
    ],
)
def test_what_cannot_run_is_said_before_anything_starts(collector: str, vendor: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_plan(job(f"collectors: [{collector}]\n", "run"), vendor=vendor)
    assert str(caught.value) == said


def test_placeholders_reach_argv_and_environment() -> None:
    made = job(
        "variants: {a: {n: 1, name: it's, flags: --x --y}}\nenv: {N: 'n={n}'}\n", "run '{name}' {flags} -n{n}"
    )
    trial = make_plan(made).trials[0]
    assert trial.argv == ("run", "it's", "--x", "--y", "-n1")
    assert trial.env == {"N": "n=1"}


def test_command_json_is_what_the_architecture_page_says() -> None:
    made = load_text("""
name: transformer
command: python train.py --batch {batch}
variants: {baseline: {batch: 16}}
launch_blocking: both
collectors: [torch]
ranges: {modules: 2}
resources: {nodes: 2, ranks_per_node: 4, timeout: 10m, grace: 5s}
env: {A: b}
torch: {activities: [cpu, cuda]}
workdir: sub
""")
    plan = make_plan(made)
    made_command = make_command(
        plan, plan.trials[1], "transformer-20260101T000000Z-abcd", cwd="/home/me", attempt=2
    )
    command = to_json(made_command)
    assert command == {
        "format": 2,
        "trial": "001-baseline-torch-blocking-r1",
        "attempt": 2,
        "run": "transformer-20260101T000000Z-abcd",
        "job": "transformer",
        "variant": "baseline",
        "values": {"batch": 16},
        "repeat": 1,
        "collector": "torch",
        "profiler": "torch",
        "vendor": "auto",
        "blocking": True,
        "argv": ["python", "train.py", "--batch", "16"],
        "cwd": "/home/me/sub",
        "env": {"A": "b"},
        "schedule": {
            "wait": 1,
            "warmup": 1,
            "active": 3,
            "repeat": 1,
            "skip_first": 0,
            "max_seconds": 10.0,
            "max_size": 2147483648,
        },
        "ranges": {"modules": 2, "steps": "auto", "lines": False},
        "options": {"activities": ["cpu", "cuda"]},
        "recorded": None,
        "scratch": None,
        "ranks": 8,
        "timeout_s": 600.0,
        "grace_s": 5.0,
        "patience_s": 120.0,
        "output_bytes": 1 << 30,
        "echo": True,
        "sample": 10.0,
        "findings": [],
        "secrets": [],
        "changes": None,
        "results": None,
        "image": {"reference": None, "digest": None},
        "git": {"sha": None, "dirty": None, "why": None, "seen_by": None},
    }
    assert from_json(Command, json.loads(json.dumps(command))) == made_command


def test_secrets_are_in_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    plan = make_plan(job("secrets: [TOKEN]\n", "run"))
    kept = to_json([plan_file(plan), make_command(plan, plan.trials[0], "r")])
    assert "hunter2" not in json.dumps(kept)


def test_plan_json_holds_what_a_person_wants_to_see() -> None:
    kept = plan_file(make_plan(job(AB + "collectors: [none]\n"), vendor="nvidia"))
    assert to_json(kept) == {
        "format": 2,
        "job": "x",
        "vendor": "nvidia",
        "warnings": [],
        "trials": [
            {
                "index": index,
                "id": f"00{index}-{variant}-none-r1",
                "variant": variant,
                "values": {"n": index + 1},
                "collector": "none",
                "profiler": "none",
                "blocking": False,
                "repeat": 1,
                "argv": ["run", str(index + 1)],
                "env": {},
                "options": {"none": {}},
                "site": None,
                "changes": [],
            }
            for index, variant in enumerate("ab")
        ],
        "left_out": [],
    }
    assert read_plan_file(json.loads(json.dumps(to_json(kept)))) == kept


def test_a_plan_file_of_profrun_0_1_is_read() -> None:
    """Format 1 has no ``profiler``: the collector is what it became, or neutral with a block for each."""
    common = {"variant": "a", "values": {}, "blocking": False, "repeat": 1, "argv": ["run"], "env": {}}
    trials = [
        {**common, "index": 0, "id": "000", "collector": "rocprof", "options": {"pmc": [["A"]]}},
        {**common, "index": 1, "id": "001", "collector": "timeline", "options": {"nsys": {}, "rocprof": {}}},
    ]
    old = {"format": 1, "job": "x", "vendor": "amd", "warnings": [], "trials": trials}
    found = read_plan_file(old).trials
    assert [(one.collector, one.profiler, one.serial) for one in found] == [
        ("rocprof", "rocprof", True),
        ("timeline", None, False),
    ]
    assert [one.options for one in found] == [{"rocprof": {"pmc": [["A"]]}}, {"nsys": {}, "rocprof": {}}]


def test_a_collector_has_its_own_number_of_repeats_interleaved_with_the_others() -> None:
    plan = make_plan(job("collectors: [none, torch]\nrepeats: {none: 3}\n", "run"))
    assert [(one.collector, one.repeat) for one in plan.trials] == [
        ("none", 1),
        ("torch", 1),
        ("none", 2),
        ("none", 3),
    ]


def test_a_dry_run_shows_each_tool_with_its_own_options_path_and_version() -> None:
    from profrun.runner.dry_run import wrapped

    made = job(
        "collectors: [timeline]\nnsys: {path: /opt/n/nsys, version: 2024.2.3}\n"
        "timeline: {nsys: {sample: process-tree}}\nrocprof: {trace: [kernel], version: 6.3}\n",
        "run",
    )
    plan = make_plan(made)
    nsys, rocprof = wrapped(make_command(plan, plan.trials[0], "r"))
    assert nsys.argv[:2] == ("/opt/n/nsys", "profile")
    assert "--sample=process-tree" in nsys.argv
    assert "--kernel-trace" in rocprof.argv
    assert "--hip-trace" not in rocprof.argv


STAND_IN = """#!/bin/sh
if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2024.2.3"; exit; fi
echo "$@" >> "${0%/*}/seen"
[ "$1" = profile ] && shift
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


def wrapped_trial(folder: Path, tool: Path) -> dict[str, Any]:
    """exit.json of a ``timeline`` trial of ``ls /``, run by the real wrapper; ``tool`` stands for nsys."""
    options = f"{{nsys: {{sample: process-tree, capture: all, path: {tool}}}}}"
    plan = make_plan(job(f"collectors: [timeline]\ntimeline: {options}\n", "ls /"))
    trial = folder / "trials" / plan.trials[0].id
    trial.mkdir(parents=True)
    told = to_json(make_command(plan, plan.trials[0], "run", cwd=str(folder))) | {"vendor": "nvidia"}
    (trial / "command.json").write_text(json.dumps(told))
    write_bundle(folder / "bundle")
    wrapper = str(folder / "bundle" / "run.py")
    subprocess.run([sys.executable, wrapper, str(trial)], timeout=60, check=False, capture_output=True)
    return dict(json.loads((trial / "exit.json").read_text()))


def test_the_job_runs_the_tool_that_the_path_names_with_the_options_of_its_block(tmp_path: Path) -> None:
    tool = tmp_path / "my-nsys"
    tool.write_text(STAND_IN)
    tool.chmod(0o755)
    ended = wrapped_trial(tmp_path / "run", tool)
    assert "--sample=process-tree" in (tmp_path / "seen").read_text()
    assert (ended["exit_code"], ended["tool_version"]) == (0, "2024.2.3")


def test_a_path_where_no_tool_is_ends_the_trial_with_the_reason(tmp_path: Path) -> None:
    ended = wrapped_trial(tmp_path / "run", tmp_path / "missing")
    assert ended["state"] == "failed"
    assert f"there is no nsys at {tmp_path}/missing on this machine" in ended["reason"]


def test_with_lines_the_other_trials_are_the_same_and_the_mappings_come_last() -> None:
    """One mapping per variant, whatever the repeats and the launch blocking are."""
    spec = AB + "repeats: 2\nlaunch_blocking: both\ncollectors: [none, torch]\n"
    without, with_lines = make_plan(job(spec)), make_plan(job(spec + "ranges: {lines: true}\n"))
    count = len(without.trials)
    assert [trial.id for trial in with_lines.trials[:count]] == [trial.id for trial in without.trials]
    assert [trial.id[4:] for trial in with_lines.trials[count:]] == ["a-mapping-r1", "b-mapping-r1"]
    for one, other in zip(without.trials, with_lines.trials, strict=False):
        a, b = (
            to_json(make_command(plan, trial, "x", cwd="/me"))
            for plan, trial in ((without, one), (with_lines, other))
        )
        assert b["ranges"].pop("lines"), "what the job asks for is told, and nothing else differs"
        assert not a["ranges"].pop("lines")
        assert a == b


def test_all_variants_load_the_code_of_changes_where_one_has_some() -> None:
    text = "name: t\ncommand: x\nvariants: {a: {}, b: {}}\ncollectors: [none]\n"
    with_changes = make_plan(load_text(text + "changes: {b: [tf32]}\n"))
    assert [make_command(with_changes, one, "r").changes for one in with_changes.trials] == [(), ("tf32",)]
    without = make_plan(load_text(text))
    assert [make_command(without, one, "r").changes for one in without.trials] == [None, None]
