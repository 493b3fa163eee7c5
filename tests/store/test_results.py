"""What a program computed, as it is read from a trial's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profrun.contract.codec import to_json
from profrun.contract.paths import TrialPaths
from profrun.contract.results import ResultsFile
from profrun.errors import InputError
from profrun.store.files import write_json
from profrun.store.results import read_results


def test_the_results_of_all_ranks_are_read_in_their_order(tmp_path: Path) -> None:
    trial = TrialPaths(tmp_path)
    assert read_results(trial) == ()
    wanted = tuple(ResultsFile(rank, "loss", (1.5, None, float(rank))) for rank in (0, 2, 10))
    for one in reversed(wanted):
        trial.rank(one.rank).mkdir(parents=True)
        write_json(trial.results(one.rank), to_json(one))
    (trial.raw / "rank3").mkdir()  # a rank without the file
    (trial.raw / "rank").mkdir()
    write_json(trial.raw / "rank0/results.77.json", {"of": "another process"})
    assert read_results(trial) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "cannot be read"),
        (json.dumps({"rank": 0, "kind": "mood", "values": []}), "kind"),
        (json.dumps({"rank": 0, "kind": "loss", "values": ["1"]}), "values"),
        (json.dumps({"rank": 0, "kind": "loss"}), "values"),
        ('{"rank": 0, "kind": "loss", "values": [NaN]}', "NaN"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Path, text: str, why: str) -> None:
    trial = TrialPaths(tmp_path)
    trial.rank(0).mkdir(parents=True)
    trial.results(0).write_text(text)
    with pytest.raises(InputError, match=r"results\.json") as error:
        read_results(trial)
    assert why in str(error.value)
