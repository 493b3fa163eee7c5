"""Every wrong spec of wrong_specs.txt gives exactly the lines written under it, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profrun.errors import UsageError
from profrun.jobs.load import load_job, load_text

TABLE = Path(__file__).with_name("wrong_specs.txt")


def cases() -> list[tuple[str, str, list[str]]]:
    """(title, spec, lines of the error) of the table."""
    found = []
    for block in TABLE.read_text(encoding="utf-8").split("\n== ")[1:]:
        title, *lines = block.rstrip("\n").split("\n")
        said = [line[3:] for line in lines if line.startswith(">> ")]
        spec = "".join(f"{line}\n" for line in lines if not line.startswith(">> "))
        found.append((title, spec, said))
    return found


@pytest.mark.parametrize(("spec", "said"), [pytest.param(s, e, id=t) for t, s, e in cases()])
def test_error_lines(spec: str, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        load_text(spec, "job.yaml")
    assert str(caught.value).split("\n") == said
    assert caught.value.exit_code == 64


def test_there_are_enough_of_them() -> None:
    assert len(cases()) >= 100
    assert all(said for _, _, said in cases())


START = "name: x\ncommand: run\n"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (START + "env: {A: 'a\x07'}\n", "job.yaml:3:12: character '\\x07' cannot stand in YAML; delete it"),
        (START + "env: {A: 'a\x00'}\n", "job.yaml:3:12: character '\\x00' cannot stand in YAML; delete it"),
        (
            START + 'env: {A: "a\\0"}\n',
            "job.yaml:3:10: env.A: 'a\\x00' does not fit; leave out the NUL character",
        ),
        (
            START + "env: " + "[" * 5000,
            "job.yaml:3:37: is nested deeper than 32 levels; a job spec needs four",
        ),
        (
            START
            + "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{y}: &{y} [{', '.join(['*' + x] * 10)}]\n" for x, y in ("ab", "bc", "cd", "de")),
            "job.yaml:7:4: holds more than 50000 values; use fewer aliases",
        ),
        (
            START + "# " + "x" * (1 << 20),
            "job.yaml:1:1: is larger than 1 MiB; a job spec is a page or two",
        ),
    ],
    ids=["bell", "nul", "escaped nul", "deep", "alias bomb", "large"],
)
def test_hostile_specs(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_text(spec, "job.yaml")
    assert str(caught.value) == said


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes("name: é\ncommand: ü".encode() + b"\xff")
    with pytest.raises(UsageError) as caught:
        load_job(path)
    assert str(caught.value) == f"{path}:2:11: the byte 0xff is not UTF-8; save the file as UTF-8"


def test_a_missing_spec_names_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "transformer.yaml").write_text(START)
    with pytest.raises(
        UsageError, match=r"no job spec at .*tranformer\.yaml; did you mean .*/transformer\.yaml\?"
    ):
        load_job(tmp_path / "tranformer.yaml")
    with pytest.raises(UsageError, match=r"there is no job spec at .*; check the path"):
        load_job(tmp_path / "no" / "such" / "folder.yaml")


def test_a_folder_a_fifo_and_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder; give the path of a job's YAML file"):
        load_job(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="is no regular file"):
        load_job(tmp_path / "fifo")
    with pytest.raises(UsageError, match=r"cannot read .*File name too long"):
        load_job(tmp_path / ("x" * 300))


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\r\ncommand: run\r\nrepeats: 2\r\n")
    assert load_job(path).repeats == 2
