"""What others call: ``profrun.compare``, and baselines on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import profrun
from profrun.errors import InputError
from tests.analysis.conftest import Open
from tests.cli.running import call


def test_python_takes_paths_and_open_traces(real: Open, tmp_path: Path) -> None:
    a, b = (real(f"h200/torch/{name}.json.gz") for name in ("mlp", "mlp_compile"))
    by_path = profrun.compare(a.path, [b.path], by="op")
    assert by_path.by == "op"
    assert by_path.ratio == profrun.compare([a], b).ratio
    assert a.sql("SELECT 1").scalar() == 1  # what was given open stays open
    with pytest.raises(InputError, match="is not a trace"):
        profrun.compare(tmp_path, b)


def test_a_baseline_is_compared_by_name(
    real: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repeats = [str(real(f"h200/torch/rep{number}_mlp.json.gz").path) for number in (1, 2)]
    compiled = str(real("h200/torch/rep1_mlp_compile.json.gz").path)
    kept = tmp_path / "kept"
    assert call(capsys, "baseline", "save", "main", *repeats, "--dir", kept).code == 0
    found = call(capsys, "baseline", "compare", "main", compiled, "--dir", kept, "--json")
    assert found.code == 2  # one trial against two
    direct = call(capsys, "compare", *repeats, "vs", compiled, "--json")
    # Labels of a baseline's trials are those they were saved with.
    assert found.json["kernels"] == direct.json["kernels"]
    assert found.json["verdict"] == "inconclusive"
    missing = call(capsys, "baseline", "compare", "other", compiled, "--dir", kept)
    assert (missing.code, "there are main" in missing.err) == (64, True)
    gated = call(
        capsys,
        "baseline",
        "compare",
        "main",
        compiled,
        "--dir",
        kept,
        "--fail-on",
        "slower > 3%",
        "--markdown",
    )
    assert gated.code == 2
    assert "| `slower > 3%` | inconclusive |" in gated.out


def test_json_has_the_agreed_keys(real: Open, capsys: pytest.CaptureFixture[str]) -> None:
    plain, compiled, blocking = (
        str(real(f"h200/torch/{name}.json.gz").path) for name in ("mlp", "mlp_compile", "mlp_blocking")
    )
    found = call(capsys, "compare", plain, "vs", compiled, "--json").json
    assert {"verdict", "ratio", "ci95", "mde", "trials", "kernels", "reasons"} <= set(found)
    assert {"name", "category", "a_ns", "b_ns", "delta_ns", "status"} <= set(found["kernels"][0])
    twins = call(capsys, "blocking", plain, "vs", blocking, "--json").json
    assert {"ratio", "ci95", "per_op", "kernel_multiset_equal", "overlap_ns"} <= set(twins)
    assert twins["kernel_multiset_equal"] is True
    refused = call(capsys, "compare", plain, "vs", blocking, "--json")
    assert refused.code == 2
    assert (refused.json["verdict"], refused.json["ratio"], refused.json["kernels"]) == (
        "incomparable",
        None,
        [],
    )
