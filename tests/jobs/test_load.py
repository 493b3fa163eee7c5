"""Right specs: what they mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.command import Ranges
from profrun.contract.profilers import profiler
from profrun.contract.schedule import Schedule
from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.expectation import Achieved, DramBytes, Ratio, SameKernels
from profrun.jobs.load import load_job, load_text
from profrun.jobs.model import Job, Resources
from profrun.jobs.problems import SpecError
from tests.conftest import ROOT, examples
from tests.jobs.specs import BASE, SCALAR, TEXT, errors_of, load_small

DEFAULT = {name: profiler(name).options() for name in ("none", "torch")}
"""Options of a job that gives none: those of the collectors that it has by default."""


def test_name_and_command_are_enough_and_defaults_are_those_of_the_model() -> None:
    assert load_small() == Job(name="x", command="run", variants={"default": {}}, options=DEFAULT)


def test_every_block_of_the_design_is_read() -> None:
    job = load_text("""
name: transformer
image: auto
command: python transformer.py --batch {batch} --seq {seq} --precision {precision}
variants:
  baseline:  {batch: 16, seq: 128,  precision: fp32}
  optimised: {batch: 32, seq: 2048, precision: fp16}
collectors: [none, torch, timeline]
launch_blocking: both
repeats: 5
schedule: {wait: 1, warmup: 1, active: 3, repeat: 1}
ranges: {modules: 2, steps: auto}
resources: {gpus: 1, nodes: 1, ranks_per_node: 1, shm: 16GiB, timeout: 30m}
expect:
  - {variant: baseline, kernels_per_step: 18, absent: [cudaMemcpyAsync]}
torch: {record_shapes: true, profile_memory: true, with_stack: false, with_flops: true}
nsys:  {trace: [cuda, nvtx, cublas, cudnn], cuda_graph_trace: node}
rocprof: {trace: [kernel, hip, marker, memory-copy]}
""")
    assert job.variants["optimised"] == {"batch": 32, "seq": 2048, "precision": "fp16"}
    assert job.collectors == ("none", "torch", "timeline")
    assert job.launch_blocking == "both"
    assert job.schedule == Schedule(1, 1, 3, 1, 0)
    assert job.ranges == Ranges(2, "auto")
    assert job.resources == Resources(gpus=1, shm=16 << 30, timeout=1800.0)
    assert job.expect[0].checks == {"kernels_per_step": (18, 18), "absent": ("cudaMemcpyAsync",)}
    nsys = profiler("nsys").options(trace=("cuda", "nvtx", "cublas", "cudnn"), cuda_graph_trace="node")
    assert job.options["nsys"] == nsys
    assert list(job.options) == ["none", "torch", "nsys", "rocprof"]
    assert job.warnings == ()


@pytest.mark.parametrize(
    ("more", "attribute", "value"),
    [
        ("launch_blocking: off", "launch_blocking", "off"),  # false to a YAML 1.1 reader
        ("launch_blocking: 'on'", "launch_blocking", "on"),
        ("network: True", "network", True),
        (
            "env: {A: 1.10, B: 007, C: '', D: text, E: 1e3}",
            "env",
            {"A": "1.10", "B": "007", "C": "", "D": "text", "E": "1e3"},
        ),
        ("env: &e {A: 1}", "env", {"A": "1"}),
        (
            "variants: {a: &a {n: 1, m: x}, b: {<<: *a, n: 2}}",
            "variants",
            {"a": {"n": 1, "m": "x"}, "b": {"m": "x", "n": 2}},
        ),
        (
            "variants: {a: {n: 1e-4, f: true, t: 2026-11-20, q: '010', s: '', v: 1.5}}",
            "variants",
            {"a": {"n": 1e-4, "f": True, "t": "2026-11-20", "q": "010", "s": "", "v": 1.5}},
        ),
        ("resources: {cpus: null, shm: ~}", "resources", Resources(shm=None)),
        ("image: rocm/pytorch:latest", "image", "rocm/pytorch:latest"),
        ("image: ubuntu", "image", "ubuntu"),
        ("sample: off", "sample", 0.0),
        ("sample: 0", "sample", 0.0),
        ("sample: 2.5", "sample", 2.5),
        (
            "image: host.example:5000/a/b@sha256:" + "0" * 64,
            "image",
            f"host.example:5000/a/b@sha256:{'0' * 64}",
        ),
        ("image: ./torch.sif", "image", "./torch.sif"),
        ("mounts: ['./data:/data', '~/x:/x:ro']", "mounts", ("./data:/data", "~/x:/x:ro")),
        (
            "cluster: {time: 1-12:00:00, gpu_directive: gres}",
            "cluster",
            ClusterSettings(time=129600, gpu_directive="gres"),
        ),
        (
            "nsys: {version: 2024.20}",
            "options",
            {**DEFAULT, "nsys": profiler("nsys").options(version="2024.20")},
        ),
        (
            "rocprof: {pmc: [[SQ_WAVES, 'TCC_HIT[0]'], [GRBM_COUNT]]}",
            "options",
            {
                **DEFAULT,
                "rocprof": profiler("rocprof").options(pmc=(("SQ_WAVES", "TCC_HIT[0]"), ("GRBM_COUNT",))),
            },
        ),
    ],
)
def test_values(more: str, attribute: str, value: Any) -> None:
    assert getattr(load_small(more), attribute) == value


SHARES = Achieved(memory=(0.7, 1.0), occupancy=(0.0, 0.5))


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("kernels_per_step: 10..20", {"kernels_per_step": (10, 20)}),
        ("kernels_per_step: [10, 20]", {"kernels_per_step": (10, 20)}),
        ("max_share: {'*gemm*': 40%, norm: 0.1}", {"max_share": {"*gemm*": 0.4, "norm": 0.1}}),
        ("step_ms: 3, bound: memory, dtype: bf16", {"dtype": "bf16", "step_ms": 3.0, "bound": "memory"}),
        ("no_sync_in_step: false, fused: [gelu]", {"fused": ("gelu",), "no_sync_in_step": False}),
        ("counts: {gemm: 3, 'triton_*': [1, 2]}", {"counts": {"gemm": (3, 3), "triton_*": (1, 2)}}),
        ("after: {'*gemm*': cudaOcc*}", {"after": {"*gemm*": "cudaOcc*"}}),
        ("same_kernels: default", {"same_kernels": SameKernels(as_="default")}),
        (
            "same_kernels: {as: default, only: [gemm]}",
            {"same_kernels": SameKernels(as_="default", only=("gemm",))},
        ),
        ("ratio: {to: default, between: [0.5, 1]}", {"ratio": Ratio(to="default", between=(0.5, 1.0))}),
        (
            "ratio: {to: default, of: launches, below: 1, per: batch}",
            {"ratio": Ratio(to="default", of="launches", below=1.0, per="batch")},
        ),
        ("bytes: {below: 64MiB}", {"bytes": DramBytes(below=1 << 26)}),
        ("bytes: {to: default, above: 0.5}", {"bytes": DramBytes(to="default", above=0.5)}),
        ("achieved: {memory: [70%, 1], occupancy: [0, 0.5]}", {"achieved": SHARES}),
        ("finds: [tiny-kernels]", {"finds": ("tiny-kernels",)}),
    ],
)
def test_expectations(text: str, checks: dict[str, Any]) -> None:
    assert load_small(f"expect: [{{{text}}}]").expect[0].checks == checks


def test_a_schedule_beside_steps_off_keeps_its_limits_and_a_warning_names_the_rest() -> None:
    off = "ranges: {steps: off}\n"
    job = load_small(f"{off}schedule: {{active: 2, max_seconds: 2m, max_size: 1GiB}}\n")
    assert job.ranges.whole
    assert (job.schedule.max_seconds, job.schedule.max_size) == (120.0, 1 << 30)
    (warning,) = job.warnings
    assert "schedule: active: not used, because ranges.steps is off; only max_seconds and max_size" in warning
    assert load_small(f"{off}schedule: {{max_seconds: 20}}\n").warnings == ()


def test_repeats_can_differ_between_collectors() -> None:
    job = load_small("collectors: [none, torch, nsys]\nrepeats: {none: 5, torch: 2}\n")
    assert [job.repeats_of(name) for name in job.collectors] == [5, 2, 1]
    (warning,) = load_small("repeats: {none: 5, ncu: 2}\n").warnings
    assert warning == (
        "job.yaml:3:25: repeats: 'ncu' is not collected, so that its number is not used; "
        "collectors here: none, torch"
    )
    with pytest.raises(SpecError, match="'toch' is no collector; did you mean 'torch'"):
        load_small("repeats: {toch: 2}\n")


def test_a_claim_about_a_collector_that_is_not_collected_is_a_warning() -> None:
    """A job may be run with other collectors, `--collectors torch`: then this claim is not checked."""
    (warning,) = load_small("expect: [{collector: nsys, present: [a]}]").warnings
    assert warning == (
        "job.yaml:3:22: expect[0].collector: 'nsys' is not collected, so that this claim is not checked; "
        "collectors here: none, torch"
    )


def test_what_nothing_uses_is_a_warning_with_its_place() -> None:
    assert load_small("variants:\n  a: {n: 1, m: 2}\n", "run {n}").warnings == (
        "job.yaml:4:13: nothing uses 'm'; put {m} into the command, or delete it",
    )


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("collectors: [none, ncu]", "ncu"),
        ("collectors: [timeline, counters]", "counters"),
        ("collectors: [rocprof]\nrocprof: {pmc: [[SQ_WAVES]]}", "rocprof"),
    ],
)
def test_what_runs_one_kernel_at_a_time_is_not_doubled_and_says_so(spec: str, named: str) -> None:
    (said,) = load_small(f"launch_blocking: both\n{spec}").warnings
    assert said == (
        f"job.yaml:3:18: trials of {named} get no blocking twin; they run one kernel at a time anyway"
    )


def test_rocprof_for_a_timeline_is_doubled() -> None:
    assert load_small("collectors: [rocprof]\nlaunch_blocking: both").warnings == ()


def test_problems_can_be_taken_apart() -> None:
    with pytest.raises(SpecError) as caught:
        load_small("repeat: 3\nrepeats: x\n")
    first, second = caught.value.problems
    assert (first.where.line, first.where.column, first.fix) == (3, 1, "did you mean 'repeats'?")
    assert (second.where.line, second.what) == (4, "repeats: 'x' is no whole number")


def test_hundreds_of_mistakes_do_not_fill_the_screen() -> None:
    with pytest.raises(SpecError) as caught:
        load_small("".join(f"key{i}: 1\n" for i in range(300)))
    lines = str(caught.value).split("\n")
    assert len(lines) == 21
    assert lines[-1] == "job.yaml: and 280 more; mend these first"


@pytest.mark.parametrize("path", sorted((ROOT / "jobs").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_jobs_of_this_repository_are_valid(path: Path) -> None:
    job = load_job(path)
    assert job.warnings == ()
    assert job.source == str(path)
    script = next(word for word in job.command.split() if word.endswith(".py"))  # behind python or torchrun
    assert (path.parent / script).is_file()  # relative paths count from the file's folder


LINE = re.compile(r"job\.yaml:\d+:\d+: .+; .+|job\.yaml: and \d+ more; mend these first")
BITS = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ": ", ",", "-", "- ", "'", '"', "#", "|", ">", "%", "@", "$", "&a ", "*a"),
        *("\n", "\t", "  ", "\n\n---\n", "<<: ", "!!int ", "yes", "1e3", "null", "0", "{x}", "{{"),
        *("\x00", "\ud800", "\ufeff", "é", "é" * 99),
    ]
)


def check(text: str) -> None:
    """A job, or an error whose every line has a place and something to do."""
    for line in errors_of(text):
        assert LINE.fullmatch(line), line


@given(st.lists(st.tuples(st.integers(0, len(BASE)), st.integers(0, 12), BITS), min_size=1, max_size=4))
@examples(200, 20_000)
def test_a_mutated_spec_loads_or_says_why(cuts: list[tuple[int, int, str]]) -> None:
    text = BASE
    for position, length, bit in cuts:
        text = text[:position] + bit + text[position + length :]
    check(text)


@given(st.text(max_size=60))
@examples(80, 5000)
def test_any_text_loads_or_says_why(text: str) -> None:
    check(text)
    check("name: x\ncommand: run\nenv: " + text)
    check("name: x\ncommand: run\nvariants: {a: {n: " + text + "}}")


JSON = st.recursive(
    SCALAR | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
TOP = [
    "image",
    "variants",
    "matrix",
    "collectors",
    "repeats",
    "schedule",
    "ranges",
    "resources",
    "expect",
    "env",
    "secrets",
    "env_file",
    "workdir",
    "mounts",
    "network",
    "torch",
    "nsys",
    "ncu",
    "rocprof",
    "timeline",
    "cluster",
]


@given(st.dictionaries(st.sampled_from(TOP), JSON, max_size=3))
@examples(80, 5000)
def test_any_shape_of_data_loads_or_says_why(data: dict[str, Any]) -> None:
    check(yaml.safe_dump({"name": "x", "command": "run", **data}, allow_unicode=True))
