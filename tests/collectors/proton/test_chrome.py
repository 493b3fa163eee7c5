"""Kernels and scopes of a Chrome trace: exact times whatever they are, ranges that hold what they should."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.collectors.json_stream import JsonStream, Malformed
from profrun.collectors.proton.chrome import Kernel, Left, in_order, kernels, scopes

WHOLE_NS = st.integers(0, 2**50)  # 13 days
PATHS = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)


def event(ts_ns: int, dur_ns: int, stream: int = 7, path: tuple[str, ...] = ()) -> dict[str, object]:
    """A kernel as Triton 3.6 writes it: keys in order of the alphabet, times as doubles."""
    return {
        "args": {"call_stack": ["ROOT", *path, "k"]},
        "cat": "kernel",
        "dur": dur_ns / 1000,
        "name": "k",
        "ph": "X",
        "tid": stream,
        "ts": ts_ns / 1000,
    }


def parse(*objects: object, left: Left | None = None) -> dict[int, list[Kernel]]:
    text = "".join(json.dumps({"displayTimeUnit": "us", "traceEvents": part}) + "\n" for part in objects)
    return kernels(JsonStream(io.BytesIO(text.encode())), left or Left())


@given(st.lists(st.tuples(WHOLE_NS, WHOLE_NS, st.integers(0, 3)), max_size=20))
def test_times_come_back_to_the_nanosecond(rows: list[tuple[int, int, int]]) -> None:
    by_stream = [[event(*row) for row in rows if row[2] == stream] for stream in range(4)]
    found = parse(*[part for part in by_stream if part])
    assert Counter((k.ts, k.dur, stream) for stream, ks in found.items() for k in ks) == Counter(rows)


@given(st.lists(PATHS, max_size=30))
def test_scopes_hold_the_kernels_in_a_row_that_were_launched_under_them(paths: list[tuple[str, ...]]) -> None:
    row = [Kernel(10 * number, 4, "k", path) for number, path in enumerate(paths)]
    found = list(scopes(row))
    for kernel in row:
        around = Counter(name for name, start, end in found if start <= kernel.ts and kernel.ts + 4 <= end)
        assert around == Counter(kernel.path)
    assert all(any(kernel.ts == start for kernel in row) for _, start, _ in found)
    assert all(any(kernel.ts + kernel.dur == end for kernel in row) for *_, end in found)
    changes = sum(
        sum(a != b for a, b in zip(before, after, strict=False)) or len(after) > len(before)
        for before, after in zip([(), *paths], paths, strict=False)
    )
    assert len(found) >= min(changes, 1), "there is a range where a path changes"


def test_a_scope_that_is_entered_again_without_anything_between_is_one_range() -> None:
    row = [Kernel(0, 1, "k", ("step",)), Kernel(5, 1, "k", ("step",)), Kernel(9, 1, "k", ())]
    assert list(scopes(row)) == [("step", 0, 6)]


def test_a_scope_ends_with_the_last_kernel_that_ends() -> None:
    row = [Kernel(0, 100, "k", ("a",)), Kernel(5, 1, "k", ("a", "b"))]
    assert sorted(scopes(row)) == [("a", 0, 100), ("b", 5, 6)]


@pytest.mark.parametrize(
    ("broken", "counts"),
    [
        ({**event(0, 1), "ts": None}, (0, 1)),
        ({**event(0, 1), "dur": -1}, (0, 1)),
        ({**event(0, 1), "ts": 1e300}, (0, 1)),
        ({**event(0, 1), "ts": True}, (0, 1)),
        ({**event(0, 1), "tid": "stream 7"}, (0, 1)),
        ({**event(0, 1), "tid": 2**64}, (0, 1)),
        ({**event(0, 1), "name": 3}, (0, 1)),
        ({**event(0, 1), "cat": "scope"}, (1, 0)),
        ("text", (1, 0)),
    ],
)
def test_events_that_cannot_be_placed_are_counted(broken: object, counts: tuple[int, int]) -> None:
    left = Left()
    found = parse([event(0, 1), broken], left=left)
    assert sum(map(len, found.values())) == 1
    assert (left.unknown, left.broken) == counts
    assert left.example


def test_a_kernel_without_a_call_stack_has_no_path() -> None:
    assert parse([{**event(0, 1), "args": {}}]) == {7: [Kernel(0, 1, "k", ())]}


def test_what_is_no_json_is_said() -> None:
    with pytest.raises(Malformed):
        kernels(JsonStream(io.BytesIO(b'{"traceEvents": [nonsense, and more of it]}')), Left())


def labelled(*steps: int | None) -> list[Kernel]:
    paths = [() if step is None else (f"profrun.step#{step}", "x") for step in steps]
    return [Kernel(10 * number, 1, "k", path) for number, path in enumerate(paths)]


def test_a_kernel_behind_a_later_step_is_not_of_an_earlier_one() -> None:
    left = Left()
    found = in_order(labelled(12, 12, 13, 12, 12, 13, 14, 12, None), left)
    assert [kernel.path[:1] for kernel in found] == [
        (f"profrun.step#{step}",) for step in (12, 12, 13, 13, 13, 13, 14, 14)
    ] + [()]
    assert all(kernel.path[1:] in (("x",), ()) for kernel in found)
    assert left.old_step == 3


def test_replays_of_a_graph_are_in_no_step() -> None:
    left = Left()
    replay = Kernel(0, 1, "k", ("profrun.step#6", "<captured_at>", "captured"))
    assert [kernel.path for kernel in in_order([replay], left)] == [("<captured_at>", "captured")]
    assert left.replayed == 1


@given(st.lists(st.none() | st.integers(0, 5), max_size=20))
def test_steps_never_go_back_on_a_stream(steps: list[int | None]) -> None:
    found = in_order(labelled(*steps), Left())
    numbers = [int(kernel.path[0].split("#")[1]) for kernel in found if kernel.path]
    assert numbers == sorted(numbers)
    assert [bool(kernel.path) for kernel in found] == [step is not None for step in steps]
    if all(step is not None for step in steps) and steps == sorted(steps, key=str):
        assert found == labelled(*steps), "what is in order stays"
