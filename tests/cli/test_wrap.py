"""``profrun wrap`` and ``profrun normalize DIR``: from two ranks to a run like any other."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from profrun.cli.app import load_command
from profrun.in_job.wrap_args import parser
from profrun.plans.bundle import write_pyz
from tests.cli.running import Capture, call, program, start

STEPS = "import profrun, time\nfor _ in range(8):\n    time.sleep(0.002)\n    profrun.step()\n"
TORCH = """
import torch
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(4, 16)).sum().backward()
    optimizer.step()
"""


def wrap(folder: Path, *options: str, script: str = STEPS, ranks: int = 1) -> None:
    """All ranks of a launch, each ``profrun wrap``, into ``out``."""
    (folder / "x.py").write_text(script)
    processes = [
        start(
            *("wrap", "--out", "out", *options, "--", sys.executable, "x.py"),
            cwd=folder,
            env={"RANK": str(rank), "WORLD_SIZE": str(ranks)},
        )
        for rank in range(ranks)
    ]
    for process in processes:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, out + err


@pytest.mark.thorough
def test_ranks_become_a_run_that_every_command_takes(tmp_path: Path, capsys: Capture) -> None:
    for variant in ("lr=1", "lr=2"):
        wrap(tmp_path, "-c", "none", "--variant", variant, ranks=2)
    out = tmp_path / "out"
    early = call(capsys, "status", out)
    assert (early.code, "make a run of it: profrun normalize" in early.err) == (64, True)
    done = call(capsys, "normalize", out, "--json")
    assert done.code == 0, done.err
    assert done.json["state"] == "finished"
    assert [trial["variant"] for trial in done.json["trials"]] == ["lr_1", "lr_2"]
    assert [(pair["kind"]) for pair in done.json["comparisons"]] == ["variant"]
    assert (out / "report.html").is_file()
    assert "profrun resume" not in call(capsys, "status", out).out
    question = "select distinct rank from step_times join processes using (process) order by 1"
    rows = call(capsys, "query", f"{out}/0", question, "--json").json["rows"]
    assert [list(row.values()) if isinstance(row, dict) else row for row in rows] == [[0], [1]]
    assert call(capsys, "compare", f"{out}/lr_1-none", "vs", f"{out}/lr_2-none", "--json").code in (0, 1, 2)
    assert call(capsys, "report", out, "--out", tmp_path / "r.html").code == 0
    resumed = call(capsys, "resume", out)
    assert (resumed.code, "another launcher started the trials" in resumed.err) == (64, True)


def test_a_failed_rank_fails_the_run_and_is_named(tmp_path: Path, capsys: Capture) -> None:
    argv = (sys.executable, "-c", "raise SystemExit(3)")
    done = program("wrap", "-o", "out", "-c", "none", "--", *argv, cwd=tmp_path)
    assert done.code == 3
    found = call(capsys, "normalize", tmp_path / "out")
    assert found.code == 1
    assert "the program exited with 3" in found.out
    assert "profrun resume" not in found.out


@pytest.mark.thorough
def test_two_ranks_under_torch_make_one_trace(tmp_path: Path, capsys: Capture) -> None:
    wrap(tmp_path, script=TORCH, ranks=2)
    done = call(capsys, "normalize", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    question = "select distinct rank from processes order by 1"
    rows = call(capsys, "query", f"{tmp_path}/out/0", question, "--json").json["rows"]
    assert [list(row.values()) if isinstance(row, dict) else row for row in rows] == [[0], [1]]


@pytest.mark.long
@pytest.mark.thorough
def test_torchrun_on_two_nodes_is_wrapped_once_per_node(tmp_path: Path, capsys: Capture) -> None:
    """As Kubeflow Trainer starts it: the wrapper counts nodes, torchrun inside counts processes."""
    write_pyz(tmp_path / "wrap.pyz")
    (tmp_path / "x.py").write_text(TORCH)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
    master = {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": port}
    nodes = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", **master}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "x.py"]
    processes = [
        subprocess.Popen(
            [sys.executable, "wrap.pyz", "--out", "out", "--", *torchrun],
            cwd=tmp_path,
            env={**os.environ, **nodes, "PET_NODE_RANK": node},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in ("1", "0")
    ]
    for process in processes:
        said, _ = process.communicate(timeout=240)
        assert process.returncode == 0, said
    told = json.loads((tmp_path / "out/trials/000-default-torch-r1/command.json").read_text())
    assert told["ranks"] == 4
    done = call(capsys, "normalize", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    question = "select distinct rank from processes order by 1"
    rows = call(capsys, "query", f"{tmp_path}/out/0", question, "--json").json["rows"]
    assert [list(row.values()) if isinstance(row, dict) else row for row in rows] == [[0], [1], [2], [3]]


def test_a_dry_run_prints_the_document(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    argv = ("python", "x.py", "--rank", "1")
    done = call(capsys, "wrap", "--out", out, "-c", "none", "--dry-run", "--", *argv)
    assert (done.code, done.json["wrapped"]) == (0, "python x.py --rank 1")
    assert done.json["command"]["trial"] == "000-default-none-r1"
    assert not out.exists()


def test_what_cannot_be_used_is_refused_before_anything_is_written(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "wrap", "--out", tmp_path / "out", "-c", "tourch", "--", "x")
    assert (done.code, "unknown collector 'tourch'" in done.err) == (64, True)
    done = call(capsys, "wrap", "-c", "none", "--", "x")
    assert (done.code, "required: --out/-o" in done.err) == (64, True)
    assert list(tmp_path.iterdir()) == []


def test_the_wrapper_as_one_file_or_a_folder(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "wrap", "--bundle", tmp_path / "a/wrap.pyz", "--json")
    assert (done.code, done.json["command"]) == (0, f"python3 {tmp_path}/a/wrap.pyz")
    assert "__main__.py" in zipfile.ZipFile(tmp_path / "a/wrap.pyz").namelist()
    folder = call(capsys, "wrap", "--bundle", tmp_path / "b")
    assert folder.code == 0
    assert f"python3 {tmp_path}/b/run.py --wrap --out DIR -- COMMAND" in folder.err
    words = ["--out", str(tmp_path / "out"), "-c", "none", "--", sys.executable, "-c", "pass"]
    for place in ([str(tmp_path / "a/wrap.pyz")], [str(tmp_path / "b/run.py"), "--wrap"]):
        subprocess.run([sys.executable, *place, *words], check=True, timeout=240)
    assert len(list((tmp_path / "out/trials").iterdir())) == 2
    (tmp_path / "c").mkdir()
    refused = call(capsys, "wrap", "--bundle", tmp_path / "c")
    assert (refused.code, "is no bundle" in refused.err) == (64, True)


def test_the_page_has_every_option_of_the_wrapper() -> None:
    """Two declarations: this one for people, and that of images without profrun."""
    inside = {option for action in parser("p")._actions for option in action.option_strings}
    everywhere = {option for item in load_command("status").params for option in item.opts} - {"--json"}
    here = {option for item in load_command("wrap").params for option in item.opts if option.startswith("-")}
    assert inside - {"-h", "--help"} == here - everywhere - {"--bundle", "--json"}


def test_normalize_says_what_it_wants(tmp_path: Path, capsys: Capture) -> None:
    wrap(tmp_path, "-c", "none")
    done = call(capsys, "normalize", tmp_path / "out", "--out", tmp_path / "t")
    assert (done.code, "leave out the options" in done.err) == (64, True)
    file = tmp_path / "out/trials/000-default-none-r1/raw/rank0/steps.json"
    done = call(capsys, "normalize", file)
    assert (done.code, "no --out is given" in done.err) == (64, True)
    assert json.loads(file.read_text())["rank"] == 0
