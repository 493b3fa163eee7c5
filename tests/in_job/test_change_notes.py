"""What several processes say of one change, put together."""

from __future__ import annotations

from profrun.contract.change_findings import applied, not_applied
from profrun.contract.changes import parse
from profrun.contract.finding import Finding
from profrun.contract.provenance import Process
from profrun.in_job.change_notes import told
from profrun.in_job.process_note import ProcessNote

WORKERS, FUSED = parse("loader-workers=2"), parse("fused-optimizer")
DID = applied(WORKERS, "1 DataLoader got 2 worker processes")
NO_LOADER, NO_OPTIMIZER = not_applied(WORKERS, "no DataLoader"), not_applied(FUSED, "no optimizer")
OTHER = Finding("no-ranges", "warning", "ranges cannot be emitted")


def note(steps: int, *warnings: Finding) -> ProcessNote:
    process = Process(1, 0, 0, "workload" if steps else "no steps", steps, False, "python", ())
    return ProcessNote(process, "3.11", warnings=warnings)


def test_a_change_that_another_process_applied_did_change_something() -> None:
    assert told([note(9, NO_LOADER, OTHER), note(9, DID)]) == [OTHER, DID]


def test_a_process_without_steps_does_not_speak_for_one_with_steps() -> None:
    assert told([note(0, NO_OPTIMIZER, OTHER), note(9)]) == [OTHER]
    assert told([note(0), note(9, NO_OPTIMIZER)]) == [NO_OPTIMIZER]


def test_where_no_process_made_steps_it_is_told() -> None:
    assert told([note(0, NO_OPTIMIZER), note(0, DID)]) == [NO_OPTIMIZER, DID]
