"""The file for speedscope, field by field of its schema."""

from __future__ import annotations

import json

from profrun.reports.speedscope import speedscope_document
from profrun.version import VERSION
from tests.reports.stacks import two_ranks


def test_frames_are_shared_and_each_rank_has_a_profile() -> None:
    text = speedscope_document(two_ranks(), "job/1")
    assert "\n" not in text
    assert json.loads(text) == {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"profrun {VERSION}",
        "name": "job/1: GPU time of 3 steps",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [
                {"name": "mlp"},
                {"name": "lib/model.py:212 forward", "file": "/me/lib/model.py", "line": 212},
                {"name": "aten::mm"},
                {"name": "gemm"},
                {"name": "train.py:9 <module>", "file": "/me/train.py", "line": 9},
                {"name": "Memcpy HtoD"},
                {"name": "train.py(3): main", "file": "train.py", "line": 3},
            ]
        },
        "profiles": [
            {
                "type": "sampled",
                "name": "rank 0: GPU time of 2 steps",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": 37,
                "samples": [[0, 1, 2, 3], [4, 5]],
                "weights": [30, 7],
            },
            {
                "type": "sampled",
                "name": "rank 1: GPU time of 1 step",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": 300,
                "samples": [[6, 3]],
                "weights": [300],
            },
        ],
    }
