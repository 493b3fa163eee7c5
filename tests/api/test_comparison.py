"""A comparison from Python is the one that the command line makes of the same traces."""

from __future__ import annotations

from pathlib import Path

import pytest

import profrun
from profrun.errors import InputError, UsageError
from tests.api.conftest import plain, recording
from tests.cli.running import call

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Two repeats of two variants, recorded on an H200."""
    root, found = tmp_path_factory.mktemp("sides"), dict[str, list[Path]]()
    for variant in ("baseline", "optimised"):
        for repeat in ("r1", "r2"):
            trial = f"{variant}-torch-{repeat}"
            with profrun.normalize(recording(trial), root / trial / "trace") as trace:
                found.setdefault(variant, []).append(trace.path)
    return found


def test_repeats_of_two_sides(sides: dict[str, list[Path]], capsys: Capture) -> None:
    found = profrun.compare(sides["baseline"], sides["optimised"], allow=["work"], by="category")
    words = [*sides["baseline"], "vs", *sides["optimised"]]
    printed = call(capsys, "compare", *words, "--allow", "work", "--by", "category", "--json").json
    assert plain({**found.to_json(), "gate": None}) == printed
    assert found.sides[0].labels == ("baseline-torch-r1", "baseline-torch-r2")
    assert found.ratio is not None
    assert len(found.table("rows")) == len(found.rows) > 3
    assert found.table("rows").to_polars()["delta_ns"].to_list() == [row.delta_ns for row in found.rows]
    assert str(found).startswith("baseline-torch-r* ")
    assert found._repr_html_().startswith("<pre>baseline-torch-r* ")


def test_open_traces_folders_and_words_are_the_same_side(
    sides: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = sides["baseline"][0], sides["optimised"][0]
    want = profrun.compare(a, b).to_json()
    assert want["verdict"] == "incomparable"
    assert profrun.compare(str(a.parent), [b]).to_json() == want
    monkeypatch.chdir(a.parent)
    with profrun.open("trace") as base, profrun.open(b) as other:
        assert profrun.compare(base, other).to_json() == want
        assert base.summary().kernels  # it is still open
    with pytest.raises(UsageError, match="is closed"):
        profrun.compare(base, b)


@pytest.mark.thorough
def test_points_of_a_run(run: profrun.Run, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    found = profrun.compare(run.traces("baseline-none"), run.traces("optimised-none"))
    words = ["last/baseline-none", "vs", "last/optimised-none"]
    printed = call(capsys, "compare", *words, "--runs", run.path.parent, "--json").json
    assert plain({**found.to_json(), "gate": None}) == printed
    assert [side.labels for side in found.sides] == [
        ("000-baseline-none-r1", "002-baseline-none-r2"),
        ("001-optimised-none-r1", "003-optimised-none-r2"),
    ]
    by_words = profrun.compare(words[0], words[2], runs=run.path.parent)
    assert by_words.to_json() == found.to_json()
    monkeypatch.setenv("PROFRUN_RUNS", str(run.path.parent))
    assert profrun.compare(words[0], words[2]).to_json() == found.to_json()


def test_a_run_compares_its_points_as_python_does(run: profrun.Run) -> None:
    (pair,) = run.comparisons
    found = profrun.compare(run.traces(pair.a), run.traces(pair.b))
    assert (pair.ratio, pair.ci95, pair.verdict) == (found.ratio, found.ci95, found.verdict)


@pytest.mark.thorough
def test_a_baseline_file_is_a_side(sides: dict[str, list[Path]], tmp_path: Path, capsys: Capture) -> None:
    call(capsys, "baseline", "save", "kept", *sides["baseline"], "--dir", tmp_path)
    by_file = profrun.compare(tmp_path / "kept.json", sides["optimised"], allow=["work"])
    by_trace = profrun.compare(sides["baseline"], sides["optimised"], allow=["work"])
    assert by_file.to_json() == by_trace.to_json()


def test_wrong_sides_and_options_are_one_line(sides: dict[str, list[Path]], tmp_path: Path) -> None:
    a, b = sides["baseline"][0], sides["optimised"][0]
    with pytest.raises(UsageError, match="is on both sides"):
        profrun.compare(a, [b, a])
    with pytest.raises(UsageError, match="is named twice on one side"):
        profrun.compare([a, a], b)
    with pytest.raises(UsageError, match="a side has no trace"):
        profrun.compare([], b)
    with pytest.raises(UsageError, match="no statistic 'mode'; use one of median, mean, p99"):
        profrun.compare(a, b, statistic="mode")  # type: ignore[arg-type]  # what is wrong is tested
    with pytest.raises(UsageError, match="no breakdown by 'colour'"):
        profrun.compare(a, b, by="colour")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is neither a trace nor a trial nor a run"):
        profrun.compare(tmp_path, b)
    with pytest.raises(UsageError, match="no run 'nowhere'"):
        profrun.compare("nowhere", b, runs=tmp_path)
