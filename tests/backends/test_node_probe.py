"""What a probe left in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from profrun.backends.node_probe import probe_job, read_answer
from profrun.contract.preflight import Preflight
from profrun.errors import UnavailableError
from profrun.jobs.cluster import ClusterSettings
from profrun.store.files import write_json


def test_an_answer_is_read_where_there_is_one(tmp_path: Path) -> None:
    assert read_answer(tmp_path) is None
    write_json(tmp_path / "answer.json", {"vendor": "amd", "vendor_by": "/dev/kfd"})
    assert read_answer(tmp_path) == Preflight("amd", "/dev/kfd")
    write_json(tmp_path / "answer.json", {"vendor": 3})
    with pytest.raises(UnavailableError, match="the probe's answer cannot be read"):
        read_answer(tmp_path)


def test_a_probe_asks_for_gpus_as_told() -> None:
    settings = ClusterSettings()
    assert [probe_job(settings, "i:1", gpus).resources.gpus for gpus in (None, 0, 2)] == ["auto", 0, 2]
