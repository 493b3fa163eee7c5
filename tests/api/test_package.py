"""``import profrun`` offers its names to programs and to type checkers, and loads each when it is used."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import profrun
from tests.conftest import ROOT

SCRIPT = """
import sys, profrun
trace = profrun.open(sys.argv[1])
table = trace.query("SELECT * FROM slices")
frames = [table.to_polars(), table.to_pandas(), table.to_arrow()]
print(len(table))
"""


def test_all_lists_every_public_name_in_order() -> None:
    tree = ast.parse((ROOT / "src/profrun/__init__.py").read_text())
    typed = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("profrun.api.")
        for alias in node.names
    }
    assert typed == set(profrun._LAZY)
    assert profrun.__all__ == sorted({*typed, "ProfrunError", "__version__", "range", "step"})
    assert dir(profrun) == profrun.__all__


@pytest.mark.parametrize("name", profrun.__all__)
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(profrun, name)
    assert isinstance(value, str) or (value.__doc__ or "").strip()
    if name not in ("__version__", "open"):
        assert value.__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'profrun' has no attribute 'opem'"):
        _ = profrun.opem  # type: ignore[attr-defined]


def test_opening_a_trace_loads_neither_numpy_nor_a_backend() -> None:
    program = (
        "import sys, profrun; profrun.open; "
        "heavy = {'numpy', 'pandas', 'polars', 'pyarrow', 'docker', 'kubernetes', 'typer', 'yaml', 'torch'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
def test_a_script_that_closes_nothing_ends_in_silence(trace: profrun.Trace) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(trace.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 100
