"""What the job specification says of torch.profiler's options."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from profrun.collectors.torch.profiler import Options


@pytest.mark.thorough  # imports torch
def test_the_stated_defaults_are_those_of_torch() -> None:
    """profrun passes no option that a job does not give, so torch's own default holds."""
    torch = pytest.importorskip("torch")
    own = inspect.signature(torch.profiler.profile.__init__).parameters
    stated = {field.name: field.metadata["default"] for field in dataclasses.fields(Options)}
    del stated["activities"]  # None: all that the build supports
    assert stated == {name: str(own[name].default).lower() for name in stated}
