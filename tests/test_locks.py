"""locks/*.txt pin what pyproject.toml asks for, with a hash for every file, for every version of Python."""

from __future__ import annotations

import re
import sys

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest brings it there
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
HASHES = r"(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n?)+)"
ENTRY = re.compile(r"^(?P<pin>[^\s#-][^\\\n]*?) \\\n" + HASHES, re.M)


def asked(group: str) -> list[Requirement]:
    """What the project and a dependency group ask for."""
    found = [Requirement(text) for text in PROJECT["project"]["dependencies"]] if group == "test" else []
    for item in GROUPS[group]:
        found += asked(item["include-group"]) if isinstance(item, dict) else [Requirement(item)]
    return found


def pins(group: str) -> list[Requirement]:
    """The pinned packages of a group, each with its marker."""
    text = (ROOT / "locks" / f"{group}.txt").read_text(encoding="utf-8")
    return [Requirement(entry["pin"]) for entry in ENTRY.finditer(text)]


def holds(requirement: Requirement, python: str) -> bool:
    """Whether a requirement counts on Linux with a version of Python."""
    where = {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": "linux"}
    return requirement.marker is None or requirement.marker.evaluate(where)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("group", ["test", "dev"])
def test_every_requirement_has_one_pin_that_it_allows(group: str, python: str) -> None:
    found: dict[str, list[str]] = {}
    for pin in pins(group):
        if holds(pin, python):
            (only,) = pin.specifier
            found.setdefault(pin.name.lower(), []).append(only.version)
    assert {name: versions for name, versions in found.items() if len(versions) != 1} == {}
    for want in asked(group):
        if holds(want, python):
            (version,) = found[want.name.lower().replace("_", "-")]
            assert want.specifier.contains(version), f"{want}, but {version}: run scripts/lock"


@pytest.mark.parametrize("group", ["test", "dev"])
def test_every_line_is_a_pin_with_its_hashes(group: str) -> None:
    text = (ROOT / "locks" / f"{group}.txt").read_text(encoding="utf-8")
    rest = [line for line in ENTRY.sub("", text).splitlines() if line.strip() and not line.startswith("#")]
    assert rest == []
    assert all(pin.url is None for pin in pins(group))


def test_every_version_that_is_named_is_pinned_for() -> None:
    named = [
        line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if ":: Python :: 3." in line
    ]
    assert tuple(named) == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
