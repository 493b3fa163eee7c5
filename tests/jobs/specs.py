"""Valid specs at random, and the parts that they are made of."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import strategies as st

from profrun.contract.profilers import all_names
from profrun.errors import UsageError
from profrun.jobs.load import load_text
from profrun.jobs.model import Job
from tests.conftest import ROOT

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


TREES = st.dictionaries(
    TEXT,
    st.recursive(
        st.none() | SCALAR,
        lambda inside: st.lists(inside, max_size=2) | st.dictionaries(TEXT, inside, max_size=2),
        max_leaves=4,
    ),
    max_size=2,
)
"""Mappings of any shape."""


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
        "repeats": draw(st.integers(1, 5) | st.just({"none": 4, "torch": 2})),
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
            st.fixed_dictionaries(
                {},
                optional={
                    "partition": NAME,
                    "time": st.just("1-02:03:04"),
                    "pod_patch": TREES,
                    "affinity": TREES,
                },
            )
        ),
    }
    return job


class Quoting(yaml.SafeDumper):
    """Every text in quotes, so that it is text to every reader."""


def spec_of(data: dict[str, Any]) -> str:
    """YAML of the data."""
    Quoting.add_representer(
        str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
    )
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
            "claim": NAME,
            "counts": st.dictionaries(NAME, st.just([1, 9]), min_size=1, max_size=2),
            "same_kernels": st.one_of(
                st.sampled_from(variants), st.fixed_dictionaries({"as": st.sampled_from(variants)})
            ),
            "ratio": st.fixed_dictionaries({"to": st.sampled_from(variants), "below": st.floats(0.1, 9)}),
            "max_share": st.dictionaries(NAME, st.floats(0.001, 1.0), min_size=1, max_size=2),
        },
    )


def load_small(more: str = "", command: str = "run", *overrides: str) -> Job:
    """A small spec with these further keys, read."""
    return load_text(f"name: x\ncommand: {command}\n{more}", "job.yaml", overrides)


BASE = "\n".join(path.read_text(encoding="utf-8") for path in JOBS[-1:])


def errors_of(text: str, *overrides: str) -> list[str]:
    """The lines of the error, none for a job."""
    try:
        load_text(text, "job.yaml", overrides)
    except UsageError as error:
        return str(error).split("\n")
    return []
