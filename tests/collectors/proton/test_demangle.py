"""C++ names of kernels in clear."""

from __future__ import annotations

import pytest

from profrun.collectors.proton import demangle as module
from profrun.collectors.proton.demangle import demangle


@pytest.mark.parametrize(
    ("name", "clear"),
    [("triton_poi_fused_0", "triton_poi_fused_0"), ("_Z3addPfi", "add(float*, int)"), ("_Z", None)],
)
def test_a_name_in_clear(name: str, clear: str | None) -> None:
    assert demangle(name) == clear


def test_without_a_runtime_only_plain_names_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_runtime", lambda: None)
    assert (demangle("_Z3addPfi"), demangle("add")) == (None, "add")
