"""Sizes and times as people write them."""

from __future__ import annotations

import pytest

from profrun.contract import quantities


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16GiB", 17179869184),
        ("512 MiB", 536870912),
        ("1.5GB", 1500000000),
        ("1kB", 1000),
        ("2TiB", 2199023255552),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert quantities.parse_size(text) == size
    assert (
        quantities.size_text(size) in (size, text.replace(" ", ""))
        or quantities.parse_size(str(quantities.size_text(size))) == size
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("1h30m", 5400), ("90s", 90), ("500ms", 0.5), ("2d", 172800), ("1.5s", 1.5)],
)
def test_times(text: str, seconds: float) -> None:
    assert quantities.parse_time(text) == seconds
