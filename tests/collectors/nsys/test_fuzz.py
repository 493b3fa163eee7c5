"""Damaged real files of nsys and ncu end in a checked trace or in one line that says what is wrong.

A few cases by default; ``PROFRUN_FUZZ=thorough`` makes thousands. Anything but InputError fails the test:
``normalize`` checks every trace, so a silent wrong one is a failure too.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from profrun.collectors.normalize import normalize
from profrun.errors import InputError
from tests.conftest import shared_data

pytestmark = pytest.mark.thorough

CASES = 500 if os.environ.get("PROFRUN_FUZZ") == "thorough" else 3
FILES = (
    "h200/nsys/transformer.sqlite",
    "nvidia/nsys-misc/testcuda-report1.sqlite",
    "nvidia/nsys-ai/healthy_1pct.sqlite",
    "h200/ncu/mlp_details.csv",
    "nvidia/ncu-derived/esmm-profile.raw.csv",
    "nvidia/ncu-rep/mojo-profile.ncu-rep",
)


def damaged(whole: bytes, dice: random.Random) -> bytes:
    """Cut, overwritten, shortened in the middle, or with foreign bytes in it."""
    data = bytearray(whole)
    at = dice.randrange(len(data))
    how = dice.randrange(4)
    if how == 0:
        return bytes(data[: at + 1])
    if how == 1:
        for _ in range(dice.choice([1, 5, 50, 500])):
            data[dice.randrange(len(data))] = dice.randrange(256)
    elif how == 2:
        del data[at : at + dice.randrange(1, 5000)]
    else:
        data[at:at] = dice.randbytes(dice.randrange(1, 300))
    return bytes(data)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(tmp_path: Path, name: str) -> None:
    whole = shared_data(name).read_bytes()
    dice = random.Random(name)
    said = []
    for number in range(CASES):
        path = tmp_path / f"damaged{Path(name).suffix}"
        path.write_bytes(damaged(whole, dice))
        try:
            normalize([path], tmp_path / str(number))
        except InputError as error:
            said.append(str(error))
    assert not [text for text in said if "\n" in text]
