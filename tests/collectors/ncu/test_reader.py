"""Reports and pages of ncu: the same launches whatever they are read from."""

from __future__ import annotations

import csv
import gzip
import json
import sys
import zlib
from pathlib import Path

import pytest

from profrun.collectors.ncu import report
from profrun.collectors.normalize import normalize
from profrun.contract.codec import to_json
from profrun.contract.steps import Anchor, StepsDevice, StepsFile
from profrun.errors import InputError, UnavailableError
from profrun.traces.trace import Trace
from tests.conftest import ROOT, shared_data

HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC"'
)
PAIRS = [
    ("h200/ncu/mlp.ncu-rep", "h200/ncu/mlp_raw.csv"),
    ("nvidia/ncu-rep/esmm-profile.ncu-rep", "nvidia/ncu-derived/esmm-profile.raw.csv"),
    ("nvidia/ncu-rep/mistic-profile7.ncu-rep", "nvidia/ncu-derived/mistic-profile7.raw.csv"),
    ("nvidia/ncu-rep/mojo-profile.ncu-rep", "nvidia/ncu-derived/mojo-profile.raw.csv"),
]


def read(tmp_path: Path, *paths: Path, name: str = "t") -> Trace:
    normalize(list(paths), tmp_path / name)
    return Trace(tmp_path / name)


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.txt"
    path.write_text(text, encoding="utf-8")
    return path


def row(number: int, name: str, *cells: str) -> str:
    identity = [str(number), "7", "app", "host", name, "1", "13", "(128, 1, 1)", "(4, 2, 1)", "0", "9.0"]
    return ",".join(f'"{cell}"' for cell in (*identity, *cells))


@pytest.mark.parametrize(("rep", "raw"), PAIRS)
def test_a_report_and_its_raw_page_hold_the_same_metrics(tmp_path: Path, rep: str, raw: str) -> None:
    """The page's numbers are scaled and rounded, the report's are not: 3 decimals of the printed unit."""
    one, two = (read(tmp_path, shared_data(name), name=str(k)) for k, name in enumerate((rep, raw)))
    query = "SELECT slice, name, unit, value FROM metrics ORDER BY slice, name"
    ours, theirs = one.sql(query).rows, two.sql(query).rows
    assert [line[:2] for line in ours] == [line[:2] for line in theirs]
    assert [line[:3] for line in ours] == [line[:3] for line in theirs]
    for (_, name, _, exact), (_, _, _, printed) in zip(ours, theirs, strict=True):
        assert printed == pytest.approx(exact, rel=1e-2, abs=5e-3), name
    shape = "SELECT * FROM kernels ORDER BY slice"
    who = "SELECT pid, rank, host, name FROM processes"
    assert one.sql(who).rows == two.sql(who).rows
    assert one.sql(shape).rows == two.sql(shape).rows
    assert (
        one.sql("SELECT name, arch, sm_count FROM devices").rows
        == two.sql("SELECT name, arch, sm_count FROM devices").rows
    )


def test_a_raw_page_against_csv_itself(tmp_path: Path) -> None:
    """Base units, so every number of the file is a number of the trace."""
    path = ROOT / "tests" / "data" / "h200" / "transformer" / "baseline-ncu-r1" / "rank0" / "report.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))[1:]
    trace = read(tmp_path, path)
    for metric in ("gpu__time_duration.sum", "launch__registers_per_thread", "dram__bytes_read.sum"):
        ours = trace.sql("SELECT value FROM metrics WHERE name = ? ORDER BY slice", [metric]).rows
        assert [value for (value,) in ours] == [float(line[metric]) for line in rows if line.get(metric)]
    names = trace.sql("SELECT name FROM slices ORDER BY slice").rows
    assert [name for (name,) in names] == [line["Kernel Name"] for line in rows]
    total = sum(round(float(line["gpu__time_duration.sum"])) for line in rows)
    assert trace.sql("SELECT sum(dur_ns)::BIGINT FROM slices").scalar() == total


def test_a_page_inside_the_programs_own_output(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "==PROF== Connected to process 7",
            "epoch 1, loss 0.5",
            HEADER + ',"gpu__time_duration.sum","sm__cycles.avg"',
            '"","","","","","","","","","","","usecond","cycle"',
            row(0, "first", "1.5", "1,048,576"),
            "==WARNING== something",
            "epoch 2, loss 0.4",
            row(1, "second", "2", "no data"),
            row(2, "cut")[:-30],
        ]
    )
    trace = read(tmp_path, page(tmp_path, text))
    assert trace.sql("SELECT name, ts_ns, dur_ns FROM slices ORDER BY slice").rows == [
        ("first", 0, 1500),
        ("second", 1500, 2000),
    ]
    assert trace.sql("SELECT slice, name, value, unit FROM metrics ORDER BY ALL").rows == [
        (0, "gpu__time_duration.sum", 1500.0, "ns"),
        (0, "sm__cycles.avg", 1048576.0, "cycle"),
        (1, "gpu__time_duration.sum", 2000.0, "ns"),
    ]
    found = dict(trace.sql("SELECT code, count FROM issues").rows)
    assert found == {"foreign-lines": 2, "row-cut": 1, "no-timeline": 2, "metric-not-number": 1}
    assert trace.meta["replayed"] is True
    assert trace.sql("SELECT grid_x, grid_y, block_x FROM kernels LIMIT 1").rows == [(4, 2, 128)]


def test_a_details_page_has_short_rows_and_rules(tmp_path: Path) -> None:
    columns = ',"Section Name","Metric Name","Metric Unit","Metric Value"'
    columns += ',"Rule Name","Rule Type","Rule Description"'
    text = "\n".join(
        [
            HEADER + columns,
            row(0, "k", "Speed Of Light", "Duration", "usecond", "4.5") + ",",
            row(0, "k", "Launch", "Registers Per Thread", "register/thread", "40") + ",",
            row(0, "k", "Other", "Duration", "msecond", "0.0045") + ",",
            row(0, "k", "Launch", "", "", "", "Bound", "OPT", "use fewer\nregisters"),
            row(1, "k", "Speed Of Light", "Duration", "second", "0.000002") + ",",
        ]
    )
    trace = read(tmp_path, page(tmp_path, text))
    assert trace.sql("SELECT dur_ns FROM slices ORDER BY slice").rows == [(4500,), (2000,)]
    assert trace.sql("SELECT name, value FROM metrics WHERE slice = 0 ORDER BY name").rows == [
        ("Duration", 4500.0),
        ("Duration (Other)", 4500.0),
        ("Registers Per Thread", 40.0),
    ]
    assert trace.sql("SELECT count, example FROM issues WHERE code = 'rules-left-out'").rows == [
        (1, "use fewer\nregisters")
    ]


@pytest.mark.parametrize(("pid", "known"), [(7, ("6ea3", 1)), (8, (None, None))])
def test_the_hook_says_which_gpu_of_the_machine_it_is(
    tmp_path: Path, pid: int, known: tuple[str | None, int | None]
) -> None:
    """The process 7 of the page saw GPU 1 of the machine as its first."""
    device = StepsDevice("nvidia", 0, "H200", uuid="6ea3", host_ordinal=1)
    steps = StepsFile(0, pid, "explicit", "wall", Anchor(1, 2, 3), device=device)
    (tmp_path / "steps.json").write_text(json.dumps(to_json(steps)))
    text = f'{HEADER},"device__attribute_display_name","gpu__time_duration.sum"\n'
    text += f'"","","","","","","","","","","","","ns"\n{row(0, "k", "H200", "5")}'
    trace = read(tmp_path, page(tmp_path, text))
    assert trace.sql("SELECT ordinal, name, arch, uuid, host_ordinal FROM devices").rows == [
        (0, "H200", "sm_90", *known)
    ]


def test_old_pages_have_twelve_columns(tmp_path: Path) -> None:
    header = (
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream",'
        '"Section Name","Metric Name","Metric Unit","Metric Value"'
    )
    line = '"0","7","app","h","k","2020-Jan-01","1","7","GPU Speed Of Light","Duration","usecond","4.5"'
    trace = read(tmp_path, page(tmp_path, header + "\n" + line))
    assert trace.sql("SELECT name, dur_ns FROM slices").rows == [("k", 4500)]
    assert trace.sql("SELECT grid_x FROM kernels").rows == [(None,)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            f'{HEADER},"m"\n"","","","","","","","","","","","%"\n' + row(0, "k", "9,00"),
            "decimal comma",
        ),
        (
            '"Process ID","Process Name","Host Name","Kernel Name","Invocations","Metric Name"\n',
            "summary page",
        ),
    ],
)
def test_pages_that_would_have_to_be_guessed_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, page(tmp_path, text))


def test_a_page_without_launches_is_an_empty_trace(tmp_path: Path) -> None:
    trace = read(tmp_path, page(tmp_path, HEADER + ',"m"\n'))
    assert trace.meta["counts"]["slices"] == {}
    assert trace.meta["vendor"] == "none"


def test_a_report_and_its_page_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [shared_data("h200/ncu/mlp.ncu-rep"), shared_data("h200/ncu/mlp_raw.csv")]
    assert read(tmp_path, *pair, name="both").meta["counts"]["slices"] == {"kernel": 10}
    monkeypatch.setattr(report, "module", lambda: None)
    trace = read(tmp_path, *pair, name="page")
    assert trace.meta["counts"]["slices"] == {"kernel": 10}
    assert trace.sql("SELECT example FROM issues WHERE code = 'same-twice'").rows == [("mlp.ncu-rep",)]


def test_without_the_package_a_report_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "module", lambda: None)
    with pytest.raises(UnavailableError, match=r"profrun\[ncu\]"):
        read(tmp_path, shared_data("h200/ncu/mlp.ncu-rep"))


@pytest.mark.parametrize("keep", [0.01, 0.3, 0.9])
def test_a_cut_report_is_refused(tmp_path: Path, keep: float) -> None:
    whole = shared_data("nvidia/ncu-rep/mojo-profile.ncu-rep").read_bytes()
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(InputError) as caught:
        read(tmp_path, cut)
    assert "\n" not in str(caught.value)


def test_ranks_follow_their_folders(tmp_path: Path) -> None:
    files = []
    for rank in (0, 1):
        folder = tmp_path / f"rank{rank}"
        folder.mkdir()
        files.append(
            page(folder, f'{HEADER},"gpu__time_duration.sum"\n{row(9, "u", "ns")}\n{row(0, "k", "5")}\n')
        )
    trace = read(tmp_path, *reversed(files))
    assert sorted(trace.sql("SELECT rank FROM processes").rows) == [(0,), (1,)]


def test_a_packed_page_that_is_damaged_in_the_middle_is_refused(tmp_path: Path) -> None:
    """It ended in exit code 70: ``zlib.error`` is no OSError."""
    row = '"{}","1","python","host","kernel","1","7","(1, 1, 1)","(32, 1, 1)","0","9.0","s","n","ns","5"\n'
    text = (
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
        '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    ) + "".join(row.format(number) for number in range(20_000))
    whole = zlib.compressobj(wbits=31)  # gzip
    packed = whole.compress(text.encode()) + whole.flush(zlib.Z_SYNC_FLUSH)
    (tmp_path / "page.csv").write_bytes(packed + b"\x07" * 100)  # a block of a kind that there is not
    with pytest.raises(InputError, match=r"page\.csv is damaged"):
        normalize([tmp_path / "page.csv"], tmp_path / "trace")


def test_a_report_on_which_nvidias_reader_aborts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader is C++ and checks with abort(), which ends the process that called it."""
    (tmp_path / "ncu_report.py").write_text("import os\ndef load_report(path):\n    os.abort()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
    with pytest.raises(InputError, match="NVIDIA's reader ends with SIGABRT on it"):
        read(tmp_path, shared_data("h200/ncu/mlp.ncu-rep"))
    assert not list(tmp_path.glob("core*"))
