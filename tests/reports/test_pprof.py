"""The profile for pprof, read back by a decoder of the test's own, with the names of profile.proto."""

from __future__ import annotations

from typing import Any

from profrun.reports.pprof import pprof_profile
from profrun.version import VERSION
from tests.reports.protobuf_reader import fields, varints
from tests.reports.stacks import two_ranks


class Profile:
    """The messages of a profile; see https://github.com/google/pprof/blob/main/proto/profile.proto."""

    def __init__(self, data: bytes) -> None:
        self.fields: dict[int, list[Any]] = dict(fields(data))
        self.texts: list[str] = [one.decode() for one in self.fields[6]]
        self.functions = self._by_id(5)
        self.locations = self._by_id(4)

    def _by_id(self, field: int) -> dict[int, dict[int, list[Any]]]:
        messages: list[dict[int, list[Any]]] = [dict(fields(one)) for one in self.fields[field]]
        return {one[1][0]: one for one in messages}

    def text(self, message: Any, field: int) -> str:
        """A field that is an index into the table of strings; 0 where it is left out."""
        number: int = message.get(field, [0])[0]
        return self.texts[number]

    def types(self) -> list[tuple[str, str]]:
        """(type, unit) of each value."""
        return [(self.text(one, 1), self.text(one, 2)) for one in map(fields, self.fields[1])]

    def place(self, number: int) -> tuple[str, str, int]:
        """(function, file, line) of a location."""
        (line,) = (dict[int, list[Any]](fields(one)) for one in self.locations[number][4])
        function = self.functions[line[1][0]]
        assert self.text(function, 2) == self.text(function, 3)
        return self.text(function, 2), self.text(function, 4), line.get(2, [0])[0]

    def samples(self) -> list[tuple[list[str], list[int], dict[str, str]]]:
        """(functions from inside out, values, labels) of each sample."""
        found = []
        for one in map(fields, self.fields[2]):
            (places,), (values,) = one[1], one[2]
            assert isinstance(places, bytes)
            assert isinstance(values, bytes)
            labels = [fields(part) for part in one[3] if isinstance(part, bytes)]
            names = [self.place(number)[0] for number in varints(places)]
            found.append((names, varints(values), {self.text(of, 1): self.text(of, 2) for of in labels}))
        return found


def test_samples_have_two_values_a_stack_from_inside_out_and_labels() -> None:
    found = Profile(pprof_profile(two_ranks(), "job/1"))
    assert found.types() == [("gpu_time", "nanoseconds"), ("launches", "count")]
    assert found.samples() == [
        (
            ["gemm", "aten::mm", "lib/model.py:212 forward", "mlp"],
            [30, 3],
            {"kind": "kernel", "rank": "0", "process": "rank 0"},
        ),
        (
            ["Memcpy HtoD", "train.py:9 <module>"],
            [7, 1],
            {"kind": "memcpy", "rank": "0", "process": "rank 0"},
        ),
        (
            ["gemm", "train.py(3): main"],
            [300, 2],
            {
                "kind": "kernel", "rank": "1", "process": "rank 1",
                "direction": "backward", "replayed": "yes",
            },
        ),
    ]  # fmt: skip


def test_a_line_has_its_file_and_number_and_no_other_field_is_written() -> None:
    found = Profile(pprof_profile(two_ranks(), "job/1"))
    assert [found.place(number) for number in sorted(found.locations)] == [
        ("mlp", "", 0),
        ("lib/model.py:212 forward", "/me/lib/model.py", 212),
        ("aten::mm", "", 0),
        ("gemm", "", 0),
        ("train.py:9 <module>", "/me/train.py", 9),
        ("Memcpy HtoD", "", 0),
        ("train.py(3): main", "train.py", 3),
    ]
    assert sorted(found.functions) == sorted(found.locations) == list(range(1, 8))  # 0 means none
    assert sorted(found.fields) == [1, 2, 4, 5, 6, 13, 14]
    assert found.texts[0] == ""
    assert len(set(found.texts)) == len(found.texts)


def test_the_profile_says_what_it_is_of_and_which_value_is_shown_first() -> None:
    found = Profile(pprof_profile(two_ranks(), "job/1"))
    (comments,), (first,) = found.fields[13], found.fields[14]
    assert [found.texts[number] for number in varints(comments)] == [
        "job/1: GPU time of 3 steps",
        f"written by profrun {VERSION}",
    ]
    assert found.texts[first] == "gpu_time"
