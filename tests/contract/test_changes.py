"""Changes as they are written, and what each kind promises."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from profrun.contract.changes import CHANGES, FORM, ChangeKind, Exactness, parse, with_own

KINDS = [pytest.param(kind, id=name) for name, kind in CHANGES.items()]
WITH_VALUES = [pytest.param(kind, id=kind.name) for kind in CHANGES.values() if kind.values]


@pytest.mark.parametrize(
    ("text", "name", "value", "whole"),
    [
        ("tf32", "tf32", "", "tf32"),
        ("loader-workers", "loader-workers", "4", "loader-workers=4"),
        ("loader-workers=16", "loader-workers", "16", "loader-workers=16"),
        ("autocast=float16", "autocast", "float16", "autocast=float16"),
        ("compile", "compile", "default", "compile=default"),
    ],
)
def test_a_change_is_read(text: str, name: str, value: str, whole: str) -> None:
    change = parse(text)
    assert (change.kind.name, change.value, change.text) == (name, value, whole)
    assert parse(change.text) == change


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no change ''"),
        ("tf33", "there is no change 'tf33'"),
        ("TF32", "there is no change 'TF32'"),
        ("tf32 ", "there is no change 'tf32 '"),
        ("tf32=1", "the change 'tf32' has no value"),
        ("tf32=", "the change 'tf32' has no value"),
        ("loader-workers=", "the change 'loader-workers' has no value ''; values match "),
        ("loader-workers=0", "has no value '0'"),
        ("loader-workers=4=4", "has no value '4=4'"),
        ("loader-workers=4\n", "has no value '4\n'"),
        ("compile=fast", "the change 'compile' has no value 'fast'; values match default"),
    ],
)
def test_what_is_no_change_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse(text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_says_what_it_is(kind: ChangeKind) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", kind.name)
    assert kind.exactness in get_args(Exactness)
    for sentence in (kind.what, kind.may_break):
        assert re.fullmatch(r"\S.*[^. ]\.", sentence)
    assert kind.env or kind.hook or kind.name == "nothing", "nothing makes it"
    assert bool(kind.value) == bool(kind.values)
    change = parse(kind.name)
    assert re.fullmatch(FORM, change.text)
    for text in (change.what, change.permanent, *change.env.values()):
        assert text
        assert "{value}" not in text
    assert (
        not kind.value
        or any(kind.value in text for text in (change.what, change.permanent, *change.env.values()))
        or kind.name == "nothing"
    )


@pytest.mark.parametrize("kind", WITH_VALUES)
def test_values_are_those_that_a_kind_lists(kind: ChangeKind) -> None:
    assert re.fullmatch(kind.values, kind.value)
    assert re.fullmatch(FORM, f"{kind.name}={kind.value}")
    with pytest.raises(ValueError, match="has no value 'no such value'"):
        parse(f"{kind.name}=no such value")


def test_variables_have_the_value() -> None:
    assert parse("cpu-threads=12").env["OMP_NUM_THREADS"] == "12"
    assert parse("connections").env == {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    assert parse("set-to-none").env == {}


def test_changes_of_one_group_exclude_each_other() -> None:
    assert parse("tf32").group == parse("autocast").group == "precision"
    assert parse("set-to-none").group == "set-to-none"
    assert parse("loader-workers=2").group == parse("loader-workers=8").group
    names = {kind.name for kind in CHANGES.values()}
    groups = {kind.group for kind in CHANGES.values() if kind.group}
    for group in groups:
        assert group not in names or CHANGES[group].group == group, "a name is another group's"


def test_a_further_change_takes_the_place_of_what_it_excludes() -> None:
    assert with_own(("set-to-none", "loader-workers=4"), ("loader-workers=8", "tf32")) == (
        "set-to-none",
        "loader-workers=8",
        "tf32",
    )
    assert with_own(("tf32",), ("tf32",)) == ("tf32",)
