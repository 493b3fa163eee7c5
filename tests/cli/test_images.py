"""``profrun images``: lists and inspects images, without an engine too."""

from __future__ import annotations

import pytest

from tests.cli.running import Capture, call


def test_images_are_listed_without_an_engine(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    assert {base["kind"] for base in call(capsys, "images", "list", "--json").json["images"]} == {
        "cuda",
        "rocm",
    }
    listed = call(capsys, "images", "list").out
    assert listed.count("(default)\n") == 2
    bases, _, _ = listed.partition("built here")
    assert max(map(len, bases.splitlines())) <= 80
    done = call(capsys, "images", "inspect", "x:1")
    assert done.code == 69
    assert "/nowhere.sock" in done.err
