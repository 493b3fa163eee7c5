"""What the processes of a job say about themselves."""

from __future__ import annotations

from pathlib import Path

from profrun.contract.codec import to_json
from profrun.contract.provenance import Process
from profrun.in_job.files import write_json
from profrun.in_job.process_note import ProcessNote, read_notes


def test_notes_of_the_wanted_ranks(tmp_path: Path) -> None:
    for number, rank in ((1, 0), (2, 1), (3, None)):
        note = ProcessNote(Process(pid=number, rank=rank), "3.10")
        write_json(tmp_path / f"process.{number}.json", to_json(note))
    (tmp_path / "process.0.json").write_text("{")
    (tmp_path / "process.9.json").write_text('{"process": 3}')
    assert [note.process.pid for note in read_notes(tmp_path, {0}.__contains__)] == [1, 3]
    assert [note.process.pid for note in read_notes(tmp_path, {0, 1}.__contains__)] == [1, 2, 3]
