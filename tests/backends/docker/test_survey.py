"""What the engine is asked; whole answers of real engines are in tests/real/docker."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import requests.exceptions

from profrun.backends.docker import survey as module
from profrun.backends.host import HostFacts
from profrun.errors import UnavailableError


def test_an_engine_that_goes_away_meanwhile_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: str) -> None:
        cause = FileNotFoundError(2, "No such file or directory")
        raise requests.exceptions.ConnectionError("Connection aborted.", cause)

    client = SimpleNamespace(
        version=lambda: {"Version": "28", "ApiVersion": "1.50"},
        info=dict,
        images=SimpleNamespace(list=gone),
    )
    monkeypatch.setattr(module, "connect", lambda timeout: client)
    with pytest.raises(UnavailableError, match="No such file or directory"):
        module.survey(HostFacts(uid=1000))
