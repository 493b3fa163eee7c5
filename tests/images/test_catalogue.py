"""The catalogue of base images."""

from __future__ import annotations

import pytest

from profrun.errors import InputError
from profrun.images.catalogue import KINDS, load


def test_the_catalogue_names_its_sources() -> None:
    bases = load()
    assert {base.kind for base in bases} == set(KINDS)
    assert all(base.source for base in bases)
    assert len({base.reference for base in bases}) == len(bases)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {reference: a, kind: cuda, source: x, colour: red}", "unknown field `colour`"),
        ("- {reference: a, kind: vulkan, source: x}", "Invalid enum value 'vulkan'"),
        ("- {reference: a, kind: cuda, source: x}", "0 default bases of kind cuda"),
        ("- [", "is not a list of base images"),
    ],
)
def test_a_wrong_catalogue(text: str, said: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("catalogue") / "c.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load(path)
