"""Sentences and tables at a width."""

from __future__ import annotations

import re

from profrun.reports.terminal_layout import (
    PLAIN,
    Command,
    Part,
    Prose,
    Style,
    Table,
    Toned,
    cut,
    cut_apart,
    lay_out,
    titled,
)


def test_names_that_a_cut_makes_alike_show_where_they_differ() -> None:
    name = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize{}_stage3_ffma_execute_kernel__5x_cublas"
    names = [name.format(size) for size in ("64x256x8", "128x128x8", "32x32x8")]
    assert len({cut(one, 28) for one in names}) == 1
    shown = cut_apart([*names, "gelu", names[0]], 28)
    assert shown[:3] == [
        "sm80_...esize64x256x8_sta...",
        "sm80_...esize128x128x8_st...",
        "sm80_...esize32x32x8_stag...",
    ]
    assert shown[3:] == ["gelu", shown[0]]
    assert max(map(len, shown)) <= 28


def test_names_are_cut_in_the_middle_and_lines_say_what_is_left_out() -> None:
    assert cut("short", 12) == "short"
    assert cut("abcdefghijklmnop", 12) == "abcde...mnop"
    parts = titled("t", Table(("name", "n"), [("x" * 60, "1")], right=(1,)), note="a note", omitted=3)
    empty, title, note, header, row, more = lay_out(parts, Style(40)).splitlines()
    assert (empty, title, note) == ("", "t", "  a note")
    assert header.split() == ["name", "n"]
    assert len(row) == 40
    assert more == "  ... and 3 more (--top 0 shows all)"


def test_a_table_without_rows_is_left_out_with_its_title() -> None:
    assert titled("t", Table(("name",), []), note="a note") == []


def test_a_table_gives_way_by_its_names_only() -> None:
    table = Table(("kernel", "a"), [("k" * 60, "12.5 us"), ("gelu", "1 ms")], (1,))
    wide, narrow = lay_out([table], PLAIN).splitlines(), lay_out([table], Style(40)).splitlines()
    assert max(map(len, wide)) == 2 + 60 + 2 + 7
    assert max(map(len, narrow)) == 40
    assert [line.split()[-2:] for line in narrow[1:]] == [["12.5", "us"], ["1", "ms"]]
    numbers = Table(("a", "b"), [("x" * 30, "y" * 30)], (1,))
    assert lay_out([numbers], Style(20)).splitlines()[1].split()[1] == "y" * 30


def test_what_is_not_known_is_a_dash() -> None:
    assert lay_out([Table(("a", "bb"), [("x", None), ("long", 12)], (1,), indent="")], PLAIN) == (
        "a     bb\nx      -\nlong  12"
    )


def test_sentences_break_at_the_width_and_keep_their_indent() -> None:
    lines = ["  one two", "    three", "    four", "    five"]
    assert lay_out(["  one two three four five"], Style(12)).splitlines() == lines
    assert lay_out([Prose("two three four five", "one", "  ")], Style(12)).splitlines() == [
        "  one: two",
        *lines[1:],
    ]
    assert lay_out(["a sentence for grep " * 9], PLAIN).count("\n") == 0
    assert lay_out(["a sentence for grep " * 9], Style(40, wrap=False)).count("\n") == 0


def test_labels_titles_and_headers_are_coloured_only_where_asked() -> None:
    parts: list[Part] = [
        Prose("too late", "critical"),
        Prose("look", "info"),
        Table(("n",), [(1,)], indent=""),
    ]
    assert lay_out(parts, Style(80)) == "critical: too late\ninfo: look\nn\n1"
    assert lay_out(parts, Style(80, colour=True)) == (
        "\x1b[1;31mcritical\x1b[0m: too late\n\x1b[1minfo\x1b[0m: look\n\x1b[1mn\x1b[0m\n1"
    )


def test_tones_are_colours_that_leave_the_text_as_it_is() -> None:
    parts: list[Part] = [
        Prose("a 12 ms -> 6 ms, 50 % less time than before, measured often", toned=[LESS]),
        Table(("n", "state"), [(1, Toned("failed", "bad")), (22, "planned")], right=(0,)),
    ]
    for width in (None, 20, 24, 40):
        plain = lay_out(parts, Style(width))
        coloured = lay_out(parts, Style(width, colour=True))
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
        assert "   1  \x1b[31mfailed\x1b[0m" in coloured
    assert "\x1b[32m50 % less time\x1b[0m" in lay_out(parts, Style(colour=True))
    assert "\x1b[32m50 %\x1b[0m\n  \x1b[32mless time\x1b[0m" in lay_out(parts, Style(24, colour=True))


LESS = Toned("50 % less time", "good")


def test_a_command_stays_on_one_line_so_that_it_can_be_copied() -> None:
    command = Command("profrun compare " + "a/long/name " * 9, "to compare them all the same")
    lines = lay_out([command], Style(40)).splitlines()
    assert lines == ["to compare them all the same:", f"  {command.text}".rstrip()]


def test_a_line_never_ends_between_a_number_and_its_unit() -> None:
    text = (
        "19.12 ms -> 8.188 ms per step: 57.2 % faster [53.3 to 60.7 %], 12 345 678 B, 3 x 4 steps, 3 trials"
    )
    for width in range(16, len(text)):
        lines = Prose(text).lines(Style(width))
        assert " ".join(line.strip() for line in lines) == text
        assert max(map(len, lines)) <= width
        for line in lines[:-1]:
            assert not re.search(r"(19.12|8.188|57.2|60.7|12|345|678)$", line), (width, lines)
    assert Prose("after 4 steps").lines(Style(8)) == ["after 4", "  steps"]  # a word is no unit
