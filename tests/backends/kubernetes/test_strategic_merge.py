"""The merge of a patch: its laws, its keys compared with Kubernetes' own schema, and what it refuses."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.backends.kubernetes.strategic_merge import MERGE_KEYS, MergeError, merge, path_text
from tests.conftest import examples

SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
FIELDS = st.sampled_from(["spec", "metadata", "labels", "resources", "image", "a.b/c"])
SCALAR = st.one_of(st.booleans(), st.integers(-9, 9), st.text("ab", max_size=2))


def lists_of_named(inside: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Items with a merge key, as a pod has them: no two with the same."""
    named = st.builds(lambda name, rest: {**rest, "name": name}, st.sampled_from("xyz"), inside)
    return st.lists(named, max_size=3, unique_by=lambda item: item["name"])


TREES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(st.sampled_from(["one", "two"]), SCALAR, max_size=2),
    lambda inside: st.fixed_dictionaries(
        {},
        optional={
            "spec": inside,
            "labels": st.dictionaries(FIELDS, st.text("ab", max_size=2), max_size=2),
            "containers": lists_of_named(inside),
            "env": lists_of_named(inside),
            "args": st.lists(SCALAR, max_size=2),
        },
    ),
    max_leaves=8,
)


def with_nulls(value: Any, draw: st.DrawFn) -> Any:
    """The tree with some of its keys set to null, and some items marked to be deleted."""
    if isinstance(value, list):
        return [with_nulls(item, draw) for item in value]
    if not isinstance(value, dict):
        return value
    if "name" in value and draw(st.integers(0, 5)) == 0:
        return {"name": value["name"], "$patch": "delete"}
    return {
        key: None if key != "name" and draw(st.integers(0, 5)) == 0 else with_nulls(item, draw)
        for key, item in value.items()
    }


@st.composite
def patches(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = with_nulls(draw(TREES), draw)
    return found


@given(TREES, patches())
@examples(100, 3000)
def test_an_empty_patch_changes_nothing_and_a_patch_twice_is_a_patch_once(
    base: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = copy.deepcopy((base, patch))
    assert merge(base, {}) == base
    once = merge(base, patch)
    assert merge(once, patch) == once
    assert (base, patch) == before
    assert "null" not in json.dumps(once)
    assert "$patch" not in json.dumps(once)


@given(TREES, TREES)
@examples(100, 3000)
def test_what_the_patch_does_not_name_stays_and_what_it_names_is_there(
    base: dict[str, Any], patch: dict[str, Any]
) -> None:
    merged = merge(base, patch)
    assert set(merged) == set(base) | set(patch)
    assert {key: merged[key] for key in base.keys() - patch.keys()} == {
        key: base[key] for key in base.keys() - patch.keys()
    }
    for kind in ("containers", "env"):
        names = [item["name"] for item in merged.get(kind, ())]
        assert names == list(
            dict.fromkeys(item["name"] for item in [*base.get(kind, ()), *patch.get(kind, ())])
        )


def keyed_lists(schema: Mapping[str, Any], found: Mapping[str, Any], seen: frozenset[str]) -> Iterator[Any]:
    """(field, its merge key or None) of every list of mappings in a schema."""
    if "$ref" in found:
        name = found["$ref"].split("/")[-1]
        if name not in seen:
            yield from keyed_lists(schema, schema[name], seen | {name})
        return
    for field, value in (found.get("properties") or {}).items():
        items = (value or {}).get("items") or {}
        if "$ref" in items or items.get("type") == "object":
            yield field, value.get("x-kubernetes-patch-merge-key")
        yield from keyed_lists(schema, value or {}, seen)
    for inner in (found.get("items"), found.get("additionalProperties")):
        if isinstance(inner, Mapping):
            yield from keyed_lists(schema, inner, seen)


@pytest.mark.parametrize("version", ["v1.29.0", "v1.33.0", "v1.37.0"])
def test_lists_are_merged_by_the_keys_that_kubernetes_documents(version: str) -> None:
    text = (SCHEMAS / f"{version}-local" / "_definitions.json").read_text()
    document = json.loads(text)
    schema = document.get("definitions") or document["$defs"]
    theirs = set(keyed_lists(schema, schema[TEMPLATE], frozenset({TEMPLATE})))
    keyed = {field: key for field, key in theirs if key}
    assert {field: MERGE_KEYS.get(field) for field in keyed} == keyed
    if version == "v1.37.0":
        assert keyed == MERGE_KEYS
    # No list of another place has the name of one of these and is to be replaced.
    assert not {field for field, key in theirs if key is None} & MERGE_KEYS.keys()


def test_lists_with_a_merge_key_are_merged_by_it_and_others_are_replaced() -> None:
    base = {
        "containers": [{"name": "trial", "args": ["a"], "env": [{"name": "A", "value": "1"}], "stdin": True}],
        "volumes": [{"name": "runs"}, {"name": "tmp"}],
        "tolerations": [{"key": "gpu"}],
    }
    patch = {
        "containers": [
            {
                "name": "trial",
                "args": ["b", "c"],
                "stdin": None,
                "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}],
            }
        ],
        "volumes": [{"name": "tmp", "$patch": "delete"}, {"name": "sys"}],
        "tolerations": [{"key": "other"}],
    }
    assert merge(base, patch) == {
        "containers": [
            {
                "name": "trial",
                "args": ["b", "c"],
                "env": [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}],
            }
        ],
        "volumes": [{"name": "runs"}, {"name": "sys"}],
        "tolerations": [{"key": "other"}],
    }


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"spec": [1]}, "spec does not fit: it is a mapping in the pod"),
        ({"spec": {"env": {"A": 1}}}, "spec.env does not fit: it is a list in the pod"),
        ({"spec": {"image": {"name": "x"}}}, "spec.image does not fit: it is a value in the pod"),
        (
            {"spec": {"env": [{"value": "1"}]}},
            "spec.env[0] has no name, by which items of this list are found",
        ),
        ({"spec": {"env": ["A"]}}, "spec.env[0] has no name, by which items of this list are found"),
        ({"spec": {"env": [{"name": ["A"]}]}}, "spec.env[0].name is neither a text nor a whole number"),
        ({"spec": {"env": [{"name": {}}]}}, "spec.env[0].name is neither a text nor a whole number"),
        ({"spec": {"$patch": "replace"}}, "spec.$patch is not known; only an item of a list may have"),
        ({"spec": {"$retainKeys": ["a"]}}, "spec.$retainKeys is not known"),
        (
            {"spec": {"env": [{"name": "A", "$patch": "merge"}]}},
            "spec.env[A].$patch is not known: write $patch: delete",
        ),
    ],
)
def test_a_patch_of_another_shape_is_refused_with_its_place(patch: dict[str, Any], said: str) -> None:
    with pytest.raises(MergeError) as caught:
        merge({"spec": {"env": [{"name": "A", "value": "1"}], "image": "x"}}, patch)
    assert said in str(caught.value)


def test_paths_name_items_of_lists_by_their_merge_key() -> None:
    path = ("spec", "containers", "trial", "volumeMounts", "/runs", "readOnly")
    assert path_text(path) == "spec.containers[trial].volumeMounts[/runs].readOnly"
    assert path_text(("metadata", "labels", "profrun/run")) == "metadata.labels.profrun/run"
