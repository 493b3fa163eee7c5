"""The catalogue of known base images: what is said to be inside, and by whom.

``images inspect`` measures; the catalogue only says where to start. A field that nobody vouches for is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from profrun.errors import InputError

Kind = Literal["cuda", "rocm"]
KINDS: tuple[Kind, ...] = ("cuda", "rocm")
VENDOR_OF: Mapping[Kind, str] = {"cuda": "nvidia", "rocm": "amd"}
"""Whose GPUs images of a kind are for."""


class Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One base image.

    Attributes:
        reference: what to pull.
        kind: which of our Dockerfiles goes on top.
        digest: ``name@sha256:...`` that the reference stands for, where a pull or its maker said so. None:
            `profrun images pin` records it.
        default: taken when no base is named; one a kind.
        framework: name and version, e.g. "torch 2.10.0".
        toolkit: CUDA or ROCm version.
        os, python: versions inside.
        profilers: executable of a profiler inside -> its version, or "included" when it is known to be there
            but not in which version.
        min_driver: oldest kernel driver that runs it.
        source: who says so.
    """

    reference: str
    kind: Kind
    source: str
    digest: str | None = None
    default: bool = False
    framework: str | None = None
    toolkit: str | None = None
    os: str | None = None
    python: str | None = None
    profilers: dict[str, str] = {}
    min_driver: str | None = None


def load(path: Path | None = None) -> tuple[Base, ...]:
    """The catalogue: the one that comes with profrun, or a file of the same form.

    Raises:
        InputError: the file is not such a catalogue, or a kind has not exactly one default.
    """
    text = path.read_text() if path else (resources.files("profrun.images") / "catalogue.yaml").read_text()
    where = str(path) if path else "the catalogue"
    try:
        bases = msgspec.convert(yaml.safe_load(text), tuple[Base, ...])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise InputError(f"{where} is not a list of base images", why=" ".join(str(error).split())) from error
    for kind in KINDS:
        defaults = [base.reference for base in bases if base.kind == kind and base.default]
        if len(defaults) != 1:
            raise InputError(f"{where} has {len(defaults)} default bases of kind {kind}, not one")
    return bases


def default_base(kind: Kind) -> Base:
    """The base of this kind that is taken when none is named."""
    return next(base for base in load() if base.kind == kind and base.default)
