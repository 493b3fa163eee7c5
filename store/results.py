"""``results.json`` of a trial: what the program computed in its first steps, of every rank."""

from __future__ import annotations

import re

from profrun.contract.codec import DocumentError, from_json
from profrun.contract.paths import TrialPaths, found_in
from profrun.contract.results import ResultsFile
from profrun.errors import InputError
from profrun.store.files import read_json


def read_results(trial: TrialPaths) -> tuple[ResultsFile, ...]:
    """What each rank of a trial computed, by rank; empty where no rank wrote a file.

    Raises:
        InputError: a file is there and is not what the hook writes.
    """
    found = []
    for folder in found_in(trial.raw, "rank*"):
        number = re.fullmatch(r"rank(\d{1,9})", folder.name)
        if number is None:
            continue
        path = trial.results(int(number[1]))
        document = read_json(path)
        if document is None:
            continue
        try:
            found.append(from_json(ResultsFile, document))
        except DocumentError as error:
            raise InputError(f"{path} is damaged", why=str(error)) from error
    return tuple(sorted(found, key=lambda one: one.rank))
