"""A matrix becomes named variants."""

from __future__ import annotations

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
