"""What a mapping writes beside the file of torch.profiler. Whole runs: tests/in_job/test_whole_run.py."""

from __future__ import annotations

from pathlib import Path

from profrun.collectors.mapping.in_process import source_digests
from profrun.contract.source_digests import SourceDigests, SourceFile, digest


def test_files_have_digests_and_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    latin = tmp_path / "latin.py"
    latin.write_bytes(b"# coding: latin-1\nx = '\xe4'\n")
    (tmp_path / "broken.py").write_bytes(b"# coding: no-such\n")
    files = [str(latin), str(tmp_path / "broken.py"), str(tmp_path / "none.py"), str(tmp_path)]
    expected = SourceFile(str(latin), (digest("# coding: latin-1"), digest("x = 'ä'")))
    assert source_digests(files) == SourceDigests((expected,))
