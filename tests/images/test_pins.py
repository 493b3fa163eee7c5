"""What tags are pinned to: names, files, and what is said when a tag moves."""

from __future__ import annotations

from pathlib import Path

import docker.errors
import pytest

from profrun.errors import ProfrunError, UnavailableError, UsageError
from profrun.images import pins
from profrun.images.catalogue import load
from profrun.images.pins import (
    check_pinnable,
    known_pins,
    moved_text,
    pinned,
    pins_file,
    plain,
    registry_digest,
    users_pins,
    write_pins,
)

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("debian", "debian:latest"),
        ("docker.io/library/debian:12", "debian:12"),
        ("docker.io/rocm/pytorch:7", "rocm/pytorch:7"),
        ("host:5000/x", "host:5000/x:latest"),
        ("host:5000/x:1", "host:5000/x:1"),
        (f"x@{A}", f"x@{A}"),
    ],
)
def test_one_image_has_one_name(name: str, short: str) -> None:
    assert plain(name) == short


def test_a_pin_is_found_by_every_name_of_its_image() -> None:
    found = {"debian:latest": f"debian@{A}"}
    assert pinned("docker.io/library/debian", found) == f"debian@{A}"
    assert pinned("debian:12", found) is None
    assert pinned(f"debian@{B}", found) is None, "a digest is what it says"


def test_pins_are_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "pins.yaml"
    assert users_pins(file) == {}
    assert write_pins({"x:1": f"x@{A}", "made:2": B}, file) == file
    assert users_pins(file) == {"x:1": f"x@{A}", "made:2": B}
    assert [path.name for path in file.parent.iterdir()] == ["pins.yaml"]
    write_pins({}, file)
    assert users_pins(file) == {}


def test_where_the_file_is(tmp_path: Path) -> None:
    assert pins_file({"PROFRUN_PINS": "/p/q"}) == Path("/p/q")
    assert pins_file({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "profrun/pins.yaml"


@pytest.mark.parametrize("text", ["[a]", "x:1: sha256:12", "x:1: 5", "{", "x:1: latest"])
def test_a_wrong_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pins.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"pins\.yaml"):
        users_pins(file)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="cannot write"):
        write_pins({"x:1": A}, tmp_path / "file" / "pins.yaml")


def test_the_users_pin_goes_before_the_catalogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""
- {{reference: c:1, kind: cuda, default: true, source: me, digest: 'c@{A}'}}
- {{reference: r:1, kind: rocm, default: true, source: me, digest: 'r@{A}'}}
- {{reference: r:2, kind: rocm, source: me}}
"""
    (tmp_path / "catalogue.yaml").write_text(text)
    monkeypatch.setattr(pins, "load", lambda: load(tmp_path / "catalogue.yaml"))
    write_pins({"r:1": f"r@{B}"}, tmp_path / "pins.yaml")
    assert known_pins(tmp_path / "pins.yaml") == {"c:1": f"c@{A}", "r:1": f"r@{B}"}


def test_what_is_said_of_a_tag_that_moved() -> None:
    assert moved_text("x:1", f"x@{A}", f"x@{A}") is None
    assert moved_text("x:1", f"x@{A}", f"docker.io/x@{A}") is None
    assert moved_text("x:1", f"x@{A}", "") is None
    assert moved_text("x:1", f"x@{A}", f"x@{B}") == (
        "x:1 has moved: it is pinned to sha256:aaaaaaaaaaaa and means sha256:bbbbbbbbbbbb now; the pinned "
        "one is used (`profrun images pin x:1` takes the new one)"
    )


@pytest.mark.parametrize("name", [f"x@{A}", "cuda", "auto", "profrun/cuda:latest"])
def test_what_cannot_be_pinned(name: str) -> None:
    with pytest.raises(UsageError):
        check_pinnable(name)


class Engine:
    """An engine that has no answer to what a registry has of an image."""

    def __init__(self, *components: str) -> None:
        self.images = self
        self._components = [{"Name": name} for name in components]

    def version(self) -> dict[str, object]:
        return {"Components": self._components}

    def get_registry_data(self, name: str) -> None:
        raise docker.errors.NotFound("404 Client Error", explanation="Not Found")


@pytest.mark.parametrize(
    ("component", "said"),
    [("Podman Engine", "podman pull x:1`, then"), ("Engine", "not say what x:1 is")],
)
def test_an_engine_that_cannot_ask_a_registry(component: str, said: str) -> None:
    with pytest.raises(ProfrunError, match=said):
        registry_digest(Engine(component), "x:1")  # type: ignore[arg-type]
