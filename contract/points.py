"""Points of a run: the name and the values of a variant, and the id of a trial."""

from __future__ import annotations

import re
from typing import Union

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Names of jobs and variants, in whole: they name folders."""

Scalar = Union[str, int, float, bool, None]
"""What one value of a variant can be."""


def scalar_of(text: str) -> Scalar:
    """A value as it is typed: a number or a boolean where it is written on a command line as it was typed,
    else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            if str(kind(text)) == text and text.lower().lstrip("-") not in ("inf", "nan"):
                return kind(text)
        except ValueError:
            continue
    return text


def value_word(key: str, text: str) -> str:
    """One value in the name of a variant: ``batch_8``; a flag that is there or not, ``--compile`` or '', is
    ``compile`` or ``no_compile``."""
    if not text:
        return f"no_{key}"
    flag = text.startswith("-") and text.lstrip("-").replace("-", "_") == key
    return key if flag else f"{key}_{re.sub(r'[^A-Za-z0-9.]+', '_', text)}"


def trial_id(index: int, variant: str, collector: str, blocking: bool, repeat: int, width: int = 3) -> str:
    """Name of a trial's folder: ``<index>-<variant>-<collector>[-blocking]-r<repeat>``.

    Args:
        index: position in the run, from 0; ``width`` is the fewest digits that it has.
        repeat: from 1.
    """
    return f"{index:0{width}d}-{variant}-{collector}{'-blocking' if blocking else ''}-r{repeat}"
