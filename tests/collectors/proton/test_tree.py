"""Random trees: calls and times are kept, ranges hold what is below them, damage is said."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors.normalize import normalize
from profrun.collectors.proton import tree
from profrun.errors import InputError
from profrun.traces.trace import Trace
from tests.conftest import examples

GPUS = {"HIP": {"0": {"arch": "gfx942", "num_sms": 304}, "1": {"arch": "gfx942", "num_sms": 304}}}
Node = dict[str, object]


def node(name: str, metrics: object = None, children: object = ()) -> Node:
    return {"children": list(children) if children is not None else None,  # type: ignore[call-overload]
            "frame": {"name": name, "type": "function"}, "metrics": metrics or {}}  # fmt: skip


def kernel(name: str, calls: int, time: int, gpu: int = 0, **more: float) -> Node:
    facts = {"count": calls, "time (ns)": time, "device_id": str(gpu), "device_type": "HIP"}
    return node(name, {**facts, **more})


KERNELS = st.builds(
    kernel, st.sampled_from("xyz"), st.integers(1, 5), st.integers(0, 10**12), st.integers(0, 1)
)
NODES = st.recursive(
    KERNELS,
    lambda below: st.builds(lambda name, c: node(name, {}, c), st.sampled_from("ab"), st.lists(below)),
    max_leaves=12,
)


def read(folder: Path, *children: Node, gpus: object = GPUS) -> Trace:
    text = json.dumps([node("ROOT", {"count": 0, "time (ns)": 0}, children), gpus], indent=4, sort_keys=True)
    (folder / "a.hatchet").write_text("\n" + text, encoding="utf-8")
    normalize([folder / "a.hatchet"], folder / "trace")
    return Trace(folder / "trace")


def leaves(value: Node) -> list[Node]:
    children = value["children"]
    assert isinstance(children, list)
    return [value] if not children else [leaf for child in children for leaf in leaves(child)]


@pytest.mark.thorough
@examples(8, 300)
@given(st.lists(NODES, min_size=1, max_size=4))
def test_calls_and_times_are_those_of_the_tree(children: list[Node]) -> None:
    calls, times = Counter[object](), Counter[object]()
    for child in children:
        for leaf in leaves(child):
            metrics = leaf["metrics"]
            assert isinstance(metrics, dict)
            if metrics:
                key = (leaf["frame"]["name"], int(metrics["device_id"]))  # type: ignore[index]
                calls[key] += metrics["count"]
                times[key] += metrics["time (ns)"]
    with TemporaryDirectory() as folder:
        trace = read(Path(folder), *children)
        rows = trace.sql(
            "SELECT s.name, d.ordinal, count(*), sum(s.dur_ns)::BIGINT FROM slices s "
            "JOIN tracks t USING (track) JOIN devices d USING (device) WHERE s.kind = 'kernel' GROUP BY ALL"
        ).rows
        assert {(name, gpu): (count, time) for name, gpu, count, time in rows} == {
            key: (calls[key], times[key]) for key in calls
        }
        ends = trace.sql(
            "SELECT max(ts_ns + dur_ns) - sum(dur_ns) FROM slices WHERE kind = 'kernel' GROUP BY track"
        ).rows
        assert all(gap == 0 for (gap,) in ends), "end to end"
        assert trace.meta["vendor"] == "amd"


def test_a_range_is_round_what_lies_below_it_on_each_gpu(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        kernel("first", 1, 5),
        node("scope", {"flops": 8.0}, [kernel("x", 2, 7), kernel("y", 1, 3, gpu=1)]),
        node("nothing", {"examples": 4}),
    )
    rows = trace.sql(
        "SELECT s.kind, s.name, d.ordinal, s.ts_ns, s.dur_ns FROM slices s JOIN tracks t USING (track) "
        "JOIN devices d USING (device) ORDER BY d.ordinal, s.ts_ns, s.slice"
    ).rows
    assert rows == [
        ("kernel", "first", 0, 0, 5),
        ("kernel", "x", 0, 5, 4),
        ("range", "scope", 0, 5, 7),
        ("kernel", "x", 0, 9, 3),
        ("range", "nothing", 0, 12, 0),
        ("kernel", "y", 1, 0, 3),
        ("range", "scope", 1, 0, 3),
    ]
    assert trace.sql("SELECT name, value FROM metrics ORDER BY name").rows == [("examples", 4), ("flops", 8)]


def test_a_node_with_kernels_and_children_is_both(tmp_path: Path) -> None:
    """Triton 3.6 writes such nodes for CUDA graphs in a program with two sessions."""
    both = kernel("x", 1, 5)
    both["children"] = [kernel("x", 3, 9)]
    rows = (
        read(tmp_path, both)
        .sql("SELECT kind, count(*), sum(dur_ns) FROM slices GROUP BY kind ORDER BY kind")
        .rows
    )
    assert sorted(rows) == [("kernel", 4, 14), ("range", 1, 14)]


def test_metrics_that_are_words_are_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, kernel("x", 1, 5), node("scope", {"note": "text", "list": [1, 2], "ok": 3}))
    assert trace.sql("SELECT count FROM issues WHERE code = 'metric_not_number'").scalar() == 2
    assert trace.sql("SELECT name, value FROM metrics").rows == [("ok", 3)]


@pytest.mark.parametrize(
    ("child", "said"),
    [
        (node("a", {}, None), "lacks its frame, metrics or children"),
        ({"children": []}, "lacks its frame, metrics or children"),
        (kernel("a", 1, 1, gpu=5), "GPU 5 is not in the list of GPUs"),
        (kernel("a", tree.MOST_CALLS + 1, 1), "more than 20,000,000 calls"),
    ],
)
def test_what_is_no_tree_is_said(tmp_path: Path, child: Node, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, kernel("k", 1, 1), child)


@pytest.mark.parametrize(
    "text", ['[{"children":[],"frame":{"name":"ROOT"', '[{"children":[],"frame":{"name":"R"}}]']
)
def test_a_cut_tree_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.hatchet").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"no whole tree of Proton|holds no kernels"):
        normalize([tmp_path / "a.hatchet"], tmp_path / "trace")
