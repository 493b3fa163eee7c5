"""A mapping starts the program as it is, and asks torch.compile to keep where its kernels come from."""

from __future__ import annotations

from profrun.collectors.mapping.wrap import wrap
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest


def test_the_command_stays_as_it_is_and_graphs_are_compiled_anew() -> None:
    request = WrapRequest(("python", "t.py"), Schedule(), {}, "/out", "", whole=False)
    found = wrap(request)
    assert found.argv == request.argv
    assert (found.hook, found.emitter, found.notes) == ("in_process", "in_process", [])
    assert found.env == {
        "INDUCTOR_PROVENANCE": "1",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
    }
