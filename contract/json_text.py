"""Reading JSON that anybody may have written: one kind of error, whatever is wrong. Standard library,
Python 3.9.

``json.loads`` raises other errors than ``ValueError`` for text that is nested very deeply, and what it
returns may be nested so deeply that printing it fails later.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

from .safe_files import read_file

MOST_BYTES = 256 << 20
"""Largest document that is read. A ``steps.json`` of a million steps has 150 MB."""
MOST_DEPTH = 64
"""Deepest nesting of lists and objects in a document; those of profrun have less than 12."""


class JsonError(ValueError):
    """A text is no JSON document that profrun reads."""


def parse(text: bytes | str) -> Any:
    """The value of a JSON text.

    Raises:
        JsonError: it is no JSON, is nested too deeply, or holds NaN, an infinity or a number of thousands of
            digits.
    """
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise JsonError("it is nested too deeply") from None
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(str(error)) from None
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [
            child
            for holder in level
            if isinstance(holder, (list, dict))
            for child in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(child, (list, dict))
        ]
        if not level:
            return value
    raise JsonError("it is nested too deeply")


def read(path: str | os.PathLike[str], *, most: int = MOST_BYTES, follow: bool = False) -> Any:
    """The value of a JSON file.

    Args:
        most: bytes that it may have.
        follow: as of ``safe_files.open_file``.

    Raises:
        JsonError: as of ``parse``.
        OSError: the file is not there, cannot be read, is larger, or is no regular file.
    """
    return parse(read_file(path, most, follow=follow))


def _no_number(text: str) -> Any:
    raise JsonError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError(f"{text:.40} is too large")
    return value
