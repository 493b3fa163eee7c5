"""The hook's orders."""

from __future__ import annotations

import json
from pathlib import Path

from profrun.contract.codec import to_json
from profrun.contract.schedule import Schedule
from profrun.in_job.config import HookConfig


def test_orders_survive_the_way_through_json(tmp_path: Path) -> None:
    orders = HookConfig(folder="/t", hook="cuda", schedule=Schedule(1, 2, 3, 4, 5), tool_version=(2024, 2))
    path = tmp_path / "c.json"
    path.write_text(json.dumps(to_json(orders)))
    assert HookConfig.load(str(path)) == orders
