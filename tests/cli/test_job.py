"""``profrun job``: a spec is checked and shown, the schema is printed, examples are copied."""

from __future__ import annotations

import json
from pathlib import Path

from profrun.jobs.examples import names
from tests.cli.running import Capture, call
from tests.conftest import ROOT


def test_a_spec_is_checked_and_shown(tmp_path: Path, capsys: Capture) -> None:
    job = ROOT / "jobs/transformer.yaml"
    assert call(capsys, "job", "check", job).code == 0
    shown = call(capsys, "job", "check", job, "--show", "--set", "repeats=7").out
    assert "repeats: 7\n" in shown
    (tmp_path / "x.yaml").write_text(shown)
    assert call(capsys, "job", "check", tmp_path / "x.yaml", "--json").json["ok"] is True
    (tmp_path / "x.yaml").write_text("name: t\ncomand: python x.py\n")
    done = call(capsys, "job", "check", tmp_path / "x.yaml")
    assert done.code == 64
    assert "x.yaml:2:1" in done.err
    assert json.loads(call(capsys, "job", "schema").out)["title"] == "profrun job"


def test_the_examples_are_listed(capsys: Capture) -> None:
    done = call(capsys, "job", "examples")
    assert done.code == 0
    assert "linear: 5 variants, 11 claims, 8 only with a GPU\n  One linear layer, eager and comp" in done.out
    assert "profrun job examples NAME" in done.err
    listed = call(capsys, "job", "examples", "--json").json["examples"]
    assert [one["name"] for one in listed] == names()
    assert listed[names().index("linear")]["files"] == ["linear.yaml", "workloads/linear.py"]


def test_an_example_is_copied_and_can_be_submitted(here: Path, capsys: Capture) -> None:
    done = call(capsys, "job", "examples", "linear")
    assert (done.code, done.out) == (0, "wrote linear.yaml\nwrote workloads/linear.py\n")
    assert done.err == "next: profrun submit linear.yaml\n"
    assert call(capsys, "submit", "linear.yaml", "--dry-run", "--json").code == 0
    again = call(capsys, "job", "examples", "linear")
    assert (again.code, again.out) == (0, "the files are here already\n")
    Path("linear.yaml").write_text("name: mine\ncommand: python x.py\n")
    kept = call(capsys, "job", "examples", "linear")
    assert kept.code == 64
    assert kept.err.startswith("profrun: linear.yaml exists with another content; ")
    assert call(capsys, "job", "examples", "linear", "--force").out == "wrote linear.yaml\n"
    assert Path("linear.yaml").read_text() == (ROOT / "jobs/linear.yaml").read_text()


def test_all_examples_are_copied_into_a_folder(here: Path, capsys: Capture) -> None:
    copied = call(capsys, "job", "examples", "--all", "--out", "new folder", "--json").json
    assert copied["examples"] == names()
    assert sorted(copied["written"]) == sorted(map(str, Path("new folder").rglob("*.*")))
    assert copied["next"][0] == f"profrun submit 'new folder/{names()[0]}.yaml'"
    for name in names():
        assert call(capsys, "job", "check", f"new folder/{name}.yaml").code == 0


def test_wrong_use_of_examples_is_refused(here: Path, capsys: Capture) -> None:
    assert "did you mean 'linear'?" in call(capsys, "job", "examples", "linar").err
    assert call(capsys, "job", "examples", "linear", "--all").code == 64
    assert call(capsys, "job", "examples", "--out", "new").code == 64
    assert list(here.iterdir()) == []
