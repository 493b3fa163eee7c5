"""Any job's dump is a spec of the same job; any text is a job or gets lines that say what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.profilers import all_names
from profrun.errors import UsageError
from profrun.jobs.command import text_of
from profrun.jobs.dump import dump_job
from profrun.jobs.load import load_job, load_text
from profrun.plans.make import make_plan
from tests.conftest import examples

ROOT = Path(__file__).resolve().parents[2]
JOBS = sorted((ROOT / "jobs").glob("*.yaml"))

PRINTABLE = st.characters(
    codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co"), exclude_characters="\ufeff\u2028\u2029"
)
TEXT = st.text(PRINTABLE, max_size=20)
WORDS = st.sampled_from(
    ["no", "on", "1e3", "010", "1:30", "~", "null", "", "=", "<<", "2026-11-20", "0x1", "a: b", "# c"]
)
SCALAR = st.one_of(
    TEXT,
    WORDS,
    st.booleans(),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
)
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
KEY = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """The data of a valid spec, using most keys."""
    keys = draw(st.lists(KEY, min_size=1, max_size=4, unique=True))
    points = st.fixed_dictionaries(dict.fromkeys(keys, SCALAR))
    variants = draw(st.dictionaries(NAME, points, min_size=1, max_size=3))
    neutral = draw(st.booleans())
    usable = [
        name
        for name in all_names()
        if (name in ("timeline", "counters")) == neutral or name in ("none", "torch")
    ]
    job: dict[str, Any] = {
        "name": draw(NAME),
        "command": "run " + " ".join(f"'{{{key}}}'" for key in keys),
        "variants": variants,
        "collectors": draw(st.lists(st.sampled_from(usable), min_size=1, max_size=3, unique=True)),
        "launch_blocking": draw(st.sampled_from(["off", "on", "both"])),
        "repeats": draw(st.integers(1, 5)),
        "schedule": draw(
            st.fixed_dictionaries({}, optional={"wait": st.integers(0, 9), "active": st.integers(1, 9)})
        ),
        "resources": {
            "timeout": draw(
                st.one_of(st.integers(1, 10**6), st.floats(1, 10**6), st.sampled_from(["30m", "1h30m"]))
            ),
            "shm": draw(
                st.one_of(st.none(), st.integers(1 << 20, 1 << 40), st.sampled_from(["16GiB", "512MiB"]))
            ),
        },
        "env": draw(
            st.dictionaries(
                KEY.filter(lambda k: not k.startswith("PROFRUN_")), TEXT.map(_escaped), max_size=2
            )
        ),
        "expect": draw(st.lists(expectations(list(variants)), max_size=2)),
        "network": draw(st.booleans()),
        "torch": draw(st.fixed_dictionaries({}, optional={"with_stack": st.booleans()})),
        "ncu": draw(
            st.fixed_dictionaries(
                {}, optional={"metrics": st.lists(NAME, min_size=1, max_size=3, unique=True)}
            )
        ),
        "cluster": draw(
            st.fixed_dictionaries({}, optional={"partition": NAME, "time": st.just("1-02:03:04")})
        ),
    }
    return job


class Quoting(yaml.SafeDumper):
    """Every text in quotes, so that it is text to every reader."""


Quoting.add_representer(
    str, lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", data, style='"')
)


def spec_of(data: dict[str, Any]) -> str:
    """YAML of the data."""
    return yaml.dump(data, Dumper=Quoting, allow_unicode=True, sort_keys=False)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def expectations(variants: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Valid entries of ``expect``."""
    return st.fixed_dictionaries(
        {"step_ms": st.floats(0.001, 1e6)},
        optional={
            "variant": st.sampled_from(variants),
            "vendor": st.sampled_from(["nvidia", "amd", "none"]),
            "kernels_per_step": st.one_of(st.integers(0, 99), st.just([1, 9]), st.just("3..7")),
            "absent": st.lists(NAME, min_size=1, max_size=2, unique=True),
            "max_share": st.dictionaries(NAME, st.floats(0.001, 1.0), min_size=1, max_size=2),
        },
    )


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


@given(jobs())
@examples(25, 1000)
def test_every_value_reaches_the_command_as_one_argument(data: dict[str, Any]) -> None:
    job = load_text(spec_of(data))
    for trial in make_plan(job).trials:
        assert trial.argv == ("run", *map(text_of, (trial.values[key] for key in _order(job.command))))


def _order(command: str) -> list[str]:
    return re.findall(r"{(\w+)}", command)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_our_jobs_come_back(path: Path) -> None:
    job = load_job(path)
    assert load_text(dump_job(job)) == job


LINE = re.compile(r"job\.yaml:\d+:\d+: .+; .+|job\.yaml: and \d+ more; mend these first")
BASE = "\n".join(path.read_text(encoding="utf-8") for path in JOBS[-1:])
BITS = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ": ", ",", "-", "- ", "'", '"', "#", "|", ">", "%", "@", "$", "&a ", "*a"),
        *("\n", "\t", "  ", "\n\n---\n", "<<: ", "!!int ", "yes", "1e3", "null", "0", "{x}", "{{"),
        *("\x00", "\ud800", "\ufeff", "é", "é" * 99),
    ]
)


def said(text: str, *overrides: str) -> list[str]:
    """The lines of the error, none for a job."""
    try:
        load_text(text, "job.yaml", overrides)
    except UsageError as error:
        return str(error).split("\n")
    return []


def check(text: str) -> None:
    """A job, or an error whose every line has a place and something to do."""
    for line in said(text):
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


@given(st.text(max_size=30), st.text(max_size=30))
@examples(40, 2000)
def test_any_override_applies_or_says_why(path: str, value: str) -> None:
    for override in (f"{path}={value}", path, f"repeats={value}", f"variants.every-step.{path}={value}"):
        for line in said(BASE, override):
            assert line.startswith(("--set ", "job.yaml:")), line


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
