"""torch.profiler and no profiler wrap nothing."""

from __future__ import annotations

from dataclasses import replace

from profrun.collectors.none import wrap as none
from profrun.collectors.torch import wrap as torch
from profrun.contract.schedule import Schedule
from profrun.contract.wrapping import WrapRequest


def test_the_command_stays_as_it_is() -> None:
    request = WrapRequest(("python", "t.py"), Schedule(), {}, "/out", "", whole=False)
    inside, nothing = torch.wrap(request), none.wrap(request)
    assert inside.argv == nothing.argv == request.argv
    assert (inside.hook, inside.emitter) == ("in_process", "in_process")
    assert inside.expected == ("*.pt.trace.json.gz",)
    (note,) = torch.wrap(replace(request, whole=True)).notes
    assert note.endswith("from the import of torch on: at most 10 s and 2 GiB of memory")
    assert (nothing.hook, nothing.emitter, nothing.expected) == ("none", None, ())
