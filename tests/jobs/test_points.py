"""A matrix becomes named variants."""

from __future__ import annotations

import pytest

from profrun.errors import UsageError
from profrun.jobs.dump import dump_job
from profrun.jobs.load import load_text
from profrun.jobs.points import keep_only
from tests.jobs.specs import load_small


def test_a_matrix_is_a_product_in_the_order_of_its_axes() -> None:
    job = load_small(
        "matrix: {batch: [8, 16], kind: [a, b],\n"
        "  exclude: [{batch: 16, kind: a}], include: [{batch: 64, kind: c/d}]}",
        "run {batch} {kind}",
    )
    assert job.variants == {
        "batch_8-kind_a": {"batch": 8, "kind": "a"},
        "batch_8-kind_b": {"batch": 8, "kind": "b"},
        "batch_16-kind_b": {"batch": 16, "kind": "b"},
        "batch_64-kind_c_d": {"batch": 64, "kind": "c/d"},
    }


def test_an_exclusion_tells_numbers_from_booleans() -> None:
    job = load_small("matrix: {n: [0, 1, true], exclude: [{n: true}]}", "run {n}")
    assert [values["n"] for values in job.variants.values()] == [0, 1]


def test_matrix_points_of_the_same_name_are_told_apart() -> None:
    names = list(load_small("matrix: {n: [a/b, a_b, '" + "x" * 80 + "']}", "run {n}").variants)
    assert names[0] == "n_a_b"
    assert names[1].startswith("n_a_b-")
    assert all(len(name) <= 64 for name in names)


def test_a_flag_that_is_there_or_not_names_its_point() -> None:
    job = load_small("matrix: {use_amp: ['', --use-amp], n: [1]}", "run {use_amp} {n}")
    assert list(job.variants) == ["no_use_amp-n_1", "use_amp-n_1"]


def test_some_variants_alone_keep_their_expectations() -> None:
    job = load_small(
        "variants: {a: {n: 1}, b2: {n: 2}, b3: {n: 3}, c: {n: 4}}\n"
        "expect: [{variant: a, step_ms: 1}, {variant: c, step_ms: 2}, {step_ms: 3},\n"
        "  {variant: [c, 'b*'], step_ms: 4}, {variant: a, same_kernels: c}]",
        "run {n}",
    )
    kept = keep_only(job, ["b?", "a"])
    assert list(kept.variants) == ["a", "b2", "b3"]  # the order of the job
    assert [(item.variant, item.step_ms) for item in kept.expect] == [(("a",), 1), (None, 3), (("b*",), 4)]
    assert kept.warnings == ("2 of 5 expectations need variants that are left out: they are not checked",)
    assert load_text(dump_job(kept)) == kept
    with pytest.raises(UsageError, match=r"^there is no variant 'b4'; variants are: a, b2, b3, c$"):
        keep_only(job, ["a", "b4"])


def test_some_variants_alone_keep_their_changes_and_rounds_where_there_is_something_to_compare() -> None:
    job = load_small(
        "variants: {a: {}, b: {}, c: {}}\nrepeats: 8\nchanges: {a: [tf32], c: [set-to-none]}\n"
        "sequential: {base: a}"
    )
    kept = keep_only(job, ["a", "b"])
    assert (kept.changes, kept.sequential) == ({"a": ("tf32",)}, job.sequential)
    assert load_text(dump_job(kept)) == kept
    for alone in (["a"], ["b", "c"]):
        kept = keep_only(job, alone)
        assert kept.sequential is None
        assert load_text(dump_job(kept)) == kept
