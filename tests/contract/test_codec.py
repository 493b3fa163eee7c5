"""Documents survive the way to JSON and back, and a damaged one is refused by the name of its field."""

from __future__ import annotations

import json
import sys
import types

import pytest

from profrun.contract.codec import DocumentError, from_json, given_json, to_json
from profrun.contract.command import Command
from profrun.contract.exit import Artefact, Exit
from profrun.contract.finding import Finding
from profrun.contract.results import ResultsFile
from profrun.contract.schedule import Schedule
from profrun.contract.steps import Anchor, StepsFile, StepTime

COMMAND = Command(
    trial="000-a-torch-r1",
    run="run",
    job="job",
    variant="a",
    collector="timeline",
    argv=("python", "x.py"),
    cwd="/w",
    values={"batch": 16, "precision": None},
    schedule=Schedule(active=2),
)
EXIT = Exit(
    trial="000-a-torch-r1",
    state="failed",
    artefacts=(Artefact("raw/rank0/x.json", 12, "truncated"),),
    warnings=(Finding("no-steps", "warning", "no step was seen"),),
)
STEPS = StepsFile(
    rank=0,
    pid=7,
    how="optimizer",
    clock="wall",
    anchor=Anchor(1, 2, 3),
    steps=(StepTime(0, 5, None), StepTime(1, 9, 4, 5, "active", "cuda_event")),
)
RESULTS = ResultsFile(1, "loss", (2.5, None))


@pytest.mark.parametrize("document", [COMMAND, EXIT, STEPS, RESULTS], ids=lambda one: type(one).__name__)
def test_a_document_survives_json(document: object) -> None:
    text = json.dumps(to_json(document))
    assert from_json(type(document), json.loads(text)) == document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"argv": "python"}, "argv is no list"),
        ({"schedule": {"wait": "1"}}, "schedule.wait is '1'"),
        ({"vendor": "intel"}, "vendor is 'intel'"),
        ({"attempt": True}, "attempt is True"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(DocumentError, match=message.replace(".", r"\.")):
        from_json(Command, {**to_json(COMMAND), **change})


def test_a_missing_field_is_named_and_an_unknown_one_is_ignored() -> None:
    document = to_json(COMMAND)
    assert from_json(Command, {**document, "newer": 1}) == COMMAND
    del document["argv"]
    with pytest.raises(DocumentError, match="argv is missing"):
        from_json(Command, document)


def test_what_is_not_given_is_left_out() -> None:
    assert given_json(Finding("a", "info", "b")) == {
        "code": "a",
        "severity": "info",
        "what": "b",
        "why": "",
        "fix": "",
    }
    assert "dur_ns" not in given_json(StepTime(0, 5, None))


@pytest.mark.parametrize("value", [1 << 63, 10**400, [[]] * 3, {"a": {"b": {"c": {"d": [0] * 1000}}}}])
def test_a_value_that_is_no_int64_is_refused_in_few_words(value: object) -> None:
    document = {"trial": "t", "state": "finished", "attempt": value}
    with pytest.raises(DocumentError, match=r"^attempt is ") as caught:
        from_json(Exit, document)
    assert len(str(caught.value)) < 80


def test_a_number_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"seconds\.app is 1"):
        from_json(Exit, {"trial": "t", "state": "finished", "seconds": {"app": 10**400}})


WRITTEN = """
from dataclasses import dataclass
from typing import Optional, Union

@dataclass(frozen=True)
class Parent:
    many: "tuple[str, ...]" = ()

@dataclass(frozen=True)
class Options(Parent):
    loud: LOUD = None
"""


@pytest.mark.parametrize(
    "spelled", ['"bool | None"', "bool", "Optional[bool]", "Union[bool, None]", "bool | None"]
)
def test_types_of_another_package_may_be_text_or_types(monkeypatch: pytest.MonkeyPatch, spelled: str) -> None:
    """A package without ``from __future__ import annotations``. On Python 3.14 all of them were not found."""
    module = types.ModuleType("written")
    monkeypatch.setitem(sys.modules, "written", module)
    exec(compile(WRITTEN.replace("LOUD", spelled), "written", "exec", dont_inherit=True), module.__dict__)
    read = from_json(module.Options, {"loud": True, "many": ["a"]})
    assert (read.loud, read.many) == (True, ("a",))
    with pytest.raises(DocumentError):
        from_json(module.Options, {"loud": "no"})
