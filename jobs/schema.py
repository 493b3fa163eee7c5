"""The job spec as values: one source for validation, the JSON Schema and the reference page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from profrun.jobs.cluster import ClusterSettings
from profrun.jobs.declared import table_of
from profrun.jobs.kinds import (
    BAD,
    Flag,
    Json,
    Kind,
    Number,
    OneOf,
    Text,
    Value,
    Variable,
    Whole,
    Word,
    is_word,
    seconds,
    size,
    wrong,
)
from profrun.jobs.nodes import Node, shown, typed
from profrun.jobs.options import BLOCKS
from profrun.jobs.problems import Problems, nearest
from profrun.jobs.tables import REQUIRED, UNSET, Field, ListOf, MapOf, Table

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
NAME_WORDS = "letters, digits, '.', '_' and '-' (64 at most, a letter or digit first): it names a folder"
IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
IDENTIFIER_WORDS = "letters, digits and '_'"
VENDORS = ("nvidia", "amd", "none")
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
DTYPE_NAMES = (
    ("float64", "fp64"),
    ("double", "fp64"),
    ("float32", "fp32"),
    ("float", "fp32"),
    ("float16", "fp16"),
    ("half", "fp16"),
    ("bfloat16", "bf16"),
)
IMAGE_WORDS = ("auto", "cuda", "rocm", "none")

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_TAG = r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
IMAGE_REFERENCE = rf"(?:[a-z]+://)?(?:{_HOST}[/#])?{_PART}(?:/{_PART})*{_TAG}"
IMAGE_FILE = r"\.{0,2}/\S.*|\S+\.(?:sif|sqsh)"


@dataclass(frozen=True)
class Image(Kind):
    """auto, cuda, rocm, none, a reference, or a file of an unpacked or squashed image."""

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        value = Text("auto, cuda, rocm, none or an image reference").read(node, at, problems)
        if value is BAD or value in IMAGE_WORDS or re.fullmatch(IMAGE_FILE, value):
            return value
        close = nearest(value, IMAGE_WORDS, 0.7) if re.fullmatch(r"\w+", value) else None
        if close:
            problems.bad(
                node.where,
                f"{at}: {shown(node)} is not known",
                f"did you mean '{close}'? (an image of that name: '{value.lower()}:latest')",
            )
            return BAD
        if not re.fullmatch(IMAGE_REFERENCE, value):
            lower = value.lower()
            hint = (
                f"write '{lower}'" if re.fullmatch(IMAGE_REFERENCE, lower) else "write one like host/name:tag"
            )
            problems.bad(node.where, f"{at}: {shown(node)} is no image reference", hint)
            return BAD
        return value

    def schema(self) -> Json:
        return {"type": "string", "pattern": f"^(?:{IMAGE_FILE}|{IMAGE_REFERENCE})$"}

    def words(self) -> str:
        return "`auto` \\| `cuda` \\| `rocm` \\| `none` \\| a reference"


@dataclass(frozen=True)
class Mount(Kind):
    """``source:target[:ro|rw]``; the target is absolute."""

    form = r"([^:]+):(/[^:]*)(?::(ro|rw))?"

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        value = Text("source:/target or source:/target:ro").read(node, at, problems)
        if value is BAD or re.fullmatch(self.form, value):
            return value
        parts = value.split(":")
        if len(parts) == 1:
            fix = f"write {value}:/{value.strip('/.~') or 'target'}"
        elif not parts[1].startswith("/"):
            fix = "the path in the container must start with '/'"
        else:
            fix = "write source:/target, or source:/target:ro"
        return wrong(node, at, problems, fix)

    def schema(self) -> Json:
        return {"type": "string", "pattern": f"^{self.form}$"}

    def words(self) -> str:
        return "`source:/target[:ro]`"


@dataclass(frozen=True)
class Span(Kind):
    """A whole number, [low, high] or 'low..high'; read as (low, high)."""

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        fix = "write a whole number, [low, high] or low..high"
        if node.kind == "list":
            ends = [Whole(0).read(item, at, problems) for item in node.items]
            if len(ends) != 2 or BAD in ends:
                return BAD if BAD in ends else wrong(node, at, problems, fix)
        else:
            match = (
                re.fullmatch(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?", node.text)
                if node.kind == "scalar"
                else None
            )
            if not match or (typed(node).type == "odd"):
                return wrong(node, at, problems, fix)
            ends = [int(match[1]), int(match[2] or match[1])]
        if ends[0] > ends[1]:
            problems.bad(node.where, f"{at}: {ends[0]} is more than {ends[1]}", f"write {ends[1]}..{ends[0]}")
            return BAD
        return tuple(ends)

    def schema(self) -> Json:
        whole: Json = {"type": "integer", "minimum": 0}
        pair = {"type": "array", "items": whole, "minItems": 2, "maxItems": 2}
        return {"anyOf": [whole, pair, {"type": "string", "pattern": r"^[0-9]+\.\.[0-9]+$"}]}

    def words(self) -> str:
        return "a whole number, `[low, high]` or `low..high`"


@dataclass(frozen=True)
class Share(Kind):
    """A part of one: 0.4 or 40%; read as a float in (0, 1]."""

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%", node.text) if node.kind == "scalar" else None
        if match and 0 < float(match[1]) <= 100:
            return float(match[1]) / 100
        if (
            node.kind == "scalar"
            and re.fullmatch(r"[1-9][0-9]{0,2}", node.text)
            and 1 < int(node.text) <= 100
        ):
            share = f"{int(node.text) / 100:g} or {node.text}%"
            return wrong(node, at, problems, f"write {share}", "is more than everything")
        return Number(0, 1).read(node, at, problems)

    def schema(self) -> Json:
        return {"anyOf": [Number(0, 1).schema(), {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$"}]}

    def words(self) -> str:
        return "a share like `0.4` or `40%`"


POINT = MapOf(Value(), IDENTIFIER, IDENTIFIER_WORDS, "{batch: 16}")


@dataclass(frozen=True)
class Matrix(Kind):
    """Axes with their values, and points taken out or added; read as (axes, exclude, include)."""

    def read(self, node: Node, at: str, problems: Problems) -> Any:
        if node.kind != "map":
            return wrong(node, at, problems, "write a mapping like {batch: [8, 16], exclude: [{batch: 8}]}")
        parts: dict[str, Any] = {"exclude": (), "include": ()}
        axes: dict[str, Any] = {}
        for key, item in node.pairs:
            place = f"{at}.{key.text}"
            if key.text in parts:
                kind = ListOf(
                    MapOf(Value(), IDENTIFIER, IDENTIFIER_WORDS, "{batch: 16}", low=1),
                    example="[{batch: 16}]",
                )
                parts[key.text] = kind.read(item, place, problems)
            elif not re.fullmatch(IDENTIFIER, key.text):
                problems.bad(
                    key.where, f"{at}: the name '{key.text[:60]}' cannot be used", f"use {IDENTIFIER_WORDS}"
                )
            else:
                axes[key.text] = ListOf(Value(), 1, unique=True, example="[8, 16]").read(
                    item, place, problems
                )
        if not axes and not problems.found:
            problems.bad(node.where, f"{at}: there is no axis", "add one like batch: [8, 16]")
        return axes, parts["exclude"], parts["include"]

    def schema(self) -> Json:
        points: Json = {"type": "array", "items": {**POINT.schema(), "minProperties": 1}}
        axis: Json = {"type": "array", "minItems": 1, "uniqueItems": True, "items": Value().schema()}
        return {
            "type": "object",
            "properties": {"exclude": points, "include": points},
            "propertyNames": {"pattern": f"^(?:{IDENTIFIER})$"},
            "additionalProperties": axis,
        }

    def words(self) -> str:
        return "a mapping `{axis: [values], exclude: [...], include: [...]}`"


def _globs(doc: str) -> Field:
    return Field(ListOf(Text("a name or a glob"), 1, unique=True, example="['*Memcpy*']"), UNSET, doc)


SCHEDULE = Table(
    {
        "wait": Field(Whole(0), 1, "Steps to skip in each cycle."),
        "warmup": Field(Whole(0), 1, "Steps in which the profiler warms up; their data is thrown away."),
        "active": Field(Whole(1), 3, "Steps to record in each cycle."),
        "repeat": Field(Whole(1, 10_000), 1, "Cycles (torch's 0, for ever, is not offered)."),
        "skip_first": Field(Whole(0), 0, "Steps before the first cycle."),
    },
    "keys of 'schedule'",
)
RANGES = Table(
    {
        "modules": Field(Whole(0, 64), 0, "Put ranges round nn.Modules to this depth; 0: none."),
        "steps": Field(
            Word(("auto", "explicit", "optimizer", "module", "off")),
            "auto",
            "`auto`: `profrun.step()`, else the optimizer's step, else the root module's forward.",
        ),
    },
    "keys of 'ranges'",
)
RESOURCES = Table(
    {
        "gpus": Field(
            OneOf(
                (Word(("auto",), "write a number, or one of"), Whole(0, 1024)), (is_word, lambda node: True)
            ),
            "auto",
            "GPUs a node; `auto`: one where there is one.",
        ),
        "nodes": Field(Whole(1, 10_000), 1, "Nodes a trial."),
        "ranks_per_node": Field(Whole(1, 1024), 1, "Processes a node."),
        "cpus": Field(Whole(1, 4096), None, "CPU cores a node.", "the engine's"),
        "memory": Field(size(1 << 20), None, "Memory a node.", "the engine's"),
        "shm": Field(
            size(1 << 20),
            16 << 30,
            "Size of /dev/shm in a container; null: the engine's.",
            "16GiB",
            nullable=True,
        ),
        "timeout": Field(seconds(1), 1800.0, "A trial that runs longer is ended, its profile kept.", "30m"),
        "grace": Field(seconds(0), 60.0, "Time a profiler gets to write before it is killed.", "60s"),
    },
    "keys of 'resources'",
)
CHECKS: dict[str, Field] = {
    "kernels_per_step": Field(Span(), UNSET, "Kernels launched in a step, by the launch."),
    "present": _globs("Names that must occur among kernels, API calls and ops."),
    "absent": _globs("Names that must not occur there."),
    "fused": _globs("Ops that must not run as kernels of their own."),
    "dtype": Field(Word(DTYPES, "types", DTYPE_NAMES), UNSET, "Type that the matrix kernels must work in."),
    "max_share": Field(
        MapOf(Share(), r".+", "a kernel, a glob or a category", "{'*softmax*': 0.2}", low=1),
        UNSET,
        "Largest share of GPU time that a kernel (glob) or category may have.",
    ),
    "no_sync_in_step": Field(Flag(), UNSET, "No step may wait for the GPU."),
    "step_ms": Field(Number(0), UNSET, "The median step must take less than this, in ms."),
    "bound": Field(Word(("overhead", "compute", "memory")), UNSET, "What must limit the step."),
}
EXPECT = Table(
    {
        "variant": Field(Text("a variant's name"), UNSET, "Only this variant.", "all"),
        "vendor": Field(Word(VENDORS), UNSET, "Only on this vendor's GPUs (`none`: without GPU).", "all"),
        "collector": Field(
            Word(tuple(BLOCKS), "collectors"), UNSET, "Only this collector's traces.", "all that can tell"
        ),
        **CHECKS,
    },
    "keys of an expectation",
)
SITE = table_of(ClusterSettings, "keys of a site")
CLUSTER = Table(
    {
        **SITE.fields,
        "sites": Field(
            MapOf(
                SITE, r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}", "letters, digits, '.', '_' and '-'", "{h200: {...}}"
            ),
            UNSET,
            "Run every trial at each of these, e.g. two partitions with GPUs of different vendors; a site "
            "has the keys of `cluster` and wins over them.",
        ),
    },
    "keys of 'cluster'",
    makes=ClusterSettings,
)
"""The block itself; ``SITE`` is also what each profile in a clusters.yaml holds."""

JOB = Table(
    {
        "name": Field(Text(NAME_WORDS, NAME), REQUIRED, "Name of the job; run folders start with it."),
        "command": Field(
            Text("the command to run"),
            REQUIRED,
            "What to run, split into arguments as a shell would; `{placeholder}` is filled from the variant. "
            "No shell runs it: for pipes and variables use `bash -c '...'`.",
        ),
        "image": Field(Image(), "auto", "`auto` follows the GPU found; `none` uses no container."),
        "variants": Field(
            MapOf(POINT, NAME, NAME_WORDS, "{baseline: {batch: 16}}", low=1),
            UNSET,
            "Named points; each fills the placeholders of `command` and `env`.",
            "one, `default`, without values",
        ),
        "matrix": Field(
            Matrix(),
            UNSET,
            "Instead of `variants`: the full product of the axes, minus `exclude`, plus `include`.",
        ),
        "collectors": Field(
            ListOf(Word(tuple(BLOCKS), "collectors"), 1, unique=True, example="[none, torch]"),
            ("none", "torch"),
            "Profilers; each has trials of its own. `timeline`: nsys or rocprof, `counters`: ncu or rocprof, "
            "by vendor.",
            "[none, torch]",
        ),
        "launch_blocking": Field(
            Word(("off", "on", "both")), "off", "Launches that wait for their kernel: not, always, or twins."
        ),
        "repeats": Field(Whole(1, 1000), 1, "Trials of each point, interleaved so that drift cancels."),
        "schedule": Field(SCHEDULE, {}, "Which steps are recorded, counted as torch.profiler.schedule does."),
        "ranges": Field(RANGES, {}, "Ranges made without touching the code."),
        "resources": Field(RESOURCES, {}, "What a trial needs."),
        "expect": Field(
            ListOf(EXPECT, example="[{kernels_per_step: 18}]"),
            (),
            "Guesses, checked per step on each trace.",
            "[]",
        ),
        "env": Field(
            MapOf(Variable(), IDENTIFIER, IDENTIFIER_WORDS, "{OMP_NUM_THREADS: 4}"),
            {},
            "Environment of the workload; `{placeholder}` works here too.",
            "{}",
        ),
        "secrets": Field(
            ListOf(Text("a variable's name", IDENTIFIER), unique=True, example="[HF_TOKEN]"),
            (),
            "Variables taken from the caller's environment and never written down.",
            "[]",
        ),
        "env_file": Field(Text("a path"), None, "File of `NAME=value` lines, read at submission."),
        "workdir": Field(Text("a path"), None, "Folder the command runs in.", "where profrun was called"),
        "mounts": Field(
            ListOf(Mount(), unique=True, example="[./data:/data:ro]"),
            (),
            "Folders a container sees too.",
            "[]",
        ),
        "network": Field(Flag(), False, "Give the container a network."),
        **{name: Field(block, UNSET, f"Options of `{name}` trials.") for name, block in BLOCKS.items()},
        "cluster": Field(CLUSTER, ClusterSettings(), "A backend takes the keys that it knows."),
    },
    "known keys",
)


def job_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a job spec.

    It holds what that language can say; placeholders, combinations and references between keys are checked
    by ``load_job`` alone.
    """
    schema = JOB.schema()
    schema["not"] = {"required": ["variants", "matrix"]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "profrun job", **schema}
