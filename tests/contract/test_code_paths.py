"""Whose code a file is, by its path."""

from __future__ import annotations

import pytest

from profrun.contract.code_paths import is_generated, is_own, package_of


@pytest.mark.parametrize(
    ("file", "package", "own"),
    [
        ("/home/me/train.py", None, True),
        ("train.py", None, True),
        ("/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", "torch", False),
        ("/opt/venv/lib/python3.12/site-packages/six.py", "six", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "numpy", False),
        ("/usr/lib/python3.12/threading.py", None, False),
        ("/bundle/_profrun/in_job/optimizers.py", None, False),
        ("<frozen runpy>", None, False),
        ("<string>", None, False),
        ("/tmp/torchinductor_me/ab/cab.py", None, True),
        ("/home/me/site-packages", None, True),
    ],
)
def test_whose_code_it_is(file: str, package: str | None, own: bool) -> None:
    assert (package_of(file), is_own(file)) == (package, own)


def test_what_torch_compile_has_made() -> None:
    assert is_generated("/tmp/torchinductor_me/ab/cab.py")
    assert not is_generated("/home/me/torchinductor.py")
