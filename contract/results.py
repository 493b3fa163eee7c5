"""``results.json``: what a program computed in its first steps, so that two trials can be compared.

``raw/rank<k>/results.json`` of a trial whose job asks for it (``results``). The hook writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional

from .options import Whole, option

FORMAT = 1

ResultKind = Literal["loss", "parameters", "output", "none"]
"""What the values are. ``loss``: of each call of backward on one number, that number. ``parameters``: of each
step of an optimizer, the sum of the absolute values of its parameters. ``output``: of each call of a root
module, the mean of the absolute values of the floating-point numbers that it returns. ``none``: nothing of
these was seen."""


Value = Optional[float]  # the codec evaluates it, in Python 3.9 too
"""A value; None: it is not finite."""


@dataclass(frozen=True)
class Results:
    """What a job asks for.

    Attributes:
        values: how many values are kept.
        seed: the seed of the random numbers of Python, numpy and torch, set when torch has been imported.
    """

    values: int = option(Whole(1, 1000), "How many losses (or other values) are kept.", value=20)
    seed: int | None = option(
        Whole(0, (1 << 31) - 1), "Seed of random numbers, set when torch is imported.", null=True
    )


@dataclass(frozen=True)
class ResultsFile:
    """What one process computed first.

    Attributes:
        rank: of the process.
        kind: what the values are: losses where there are any, else parameters, else outputs.
        values: the first of them, in order; not finite ones are None.
        spacing: relative distance of neighbouring numbers of the type that the values have in the program,
            the largest of all values; 2**-7 for bfloat16. None: not known, or sums of many numbers.
    """

    rank: int
    kind: ResultKind
    values: tuple[Value, ...]
    spacing: Value = None
    format: int = FORMAT
