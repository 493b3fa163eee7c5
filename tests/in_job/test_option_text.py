"""Values as they are typed: what fits is what a job spec takes, too."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from profrun.contract import options
from profrun.contract.codec import to_json
from profrun.contract.command import Ranges
from profrun.contract.profilers import built_in
from profrun.contract.schedule import Schedule
from profrun.errors import UsageError
from profrun.in_job.option_text import declared, read_value
from profrun.jobs.kinds import BAD
from profrun.jobs.nodes import parse
from profrun.jobs.problems import Problems
from profrun.jobs.tables import kind_of

BLOCKS = (Schedule, Ranges, *(one.options for one in built_in()))
KINDS = {f"{block.__module__}.{name}": kind for block in BLOCKS for name, kind in declared(block).items()}
TEXTS = (
    "0",
    "1",
    "3",
    "-1",
    "1.5",
    "true",
    "off",
    "auto",
    "steady",
    "10s",
    "1h30m",
    "2GiB",
    "512",
    "[a, b]",
    "x",
)


def own_texts(kind: object) -> list[str]:
    """Texts that fit a kind, by its own declaration."""
    if isinstance(kind, options.Word):
        return list(kind.known)
    if isinstance(kind, options.Many):
        inner = own_texts(kind.kind) or ["a", "b"]
        return [kind.example, f"[{inner[0]}]", f"[{', '.join(inner[:2])}]"]
    return []


def by_spec(kind: object, text: str) -> object:
    """What a job spec reads; BAD where it takes another value."""
    problems = Problems("")
    try:
        found = kind_of(kind).read(parse(text, problems), "", problems)
    except UsageError:
        return BAD
    return BAD if problems.found else found


@pytest.mark.parametrize("name", KINDS)
def test_what_is_read_is_what_a_job_spec_reads(name: str) -> None:
    kind = KINDS[name]
    agreed = 0
    for text in (*TEXTS, *own_texts(kind)):
        wanted = by_spec(kind, text)
        try:
            found = read_value(kind, text)
        except ValueError:
            assert wanted is BAD, (text, wanted)
            continue
        if wanted is not BAD:  # the command line takes a number for a text without quotes, a spec does not
            assert found == to_json(wanted), text
            agreed += 1
    assert agreed


def test_every_key_of_a_block_is_known() -> None:
    assert set(declared(Schedule)) == {item.name for item in fields(Schedule)}


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (options.Whole(1), "0", "write a whole number from 1 on"),
        (options.Whole(0, 9, or_word="steady"), "ten", "write a whole number from 0 to 9, or steady"),
        (options.Flag(), "yes", "write true or false"),
        (options.Word(("a", "b")), "c", "write one of a, b"),
        (options.Duration(1), "500ms", "write at least 1 seconds"),
        (options.Duration(), "soon", "write a time like 30m, 1h30m or 90s"),
        (options.Size(1 << 20), "1kB", "write at least 1.04858e+06 bytes"),
        (
            options.Pattern(),
            "(",
            "it is no regular expression (missing ), unterminated subpattern at position 0)",
        ),
        (
            options.Many(options.Whole(), 1, unique=True, example="[0, 8]"),
            "[1, 1]",
            "write a list like [0, 8]",
        ),
        (options.Text("a version", r"[0-9.]+"), "two", "write a version"),
    ],
)
def test_what_does_not_fit_says_what_to_write(kind: object, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        read_value(kind, text)
