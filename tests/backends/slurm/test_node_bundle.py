"""The lines that copy the in-job part to the nodes, carried out by the shells that run them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from profrun.backends.slurm.node_bundle import MANY_RANKS, node_bundle
from profrun.backends.slurm.runtimes import Runtime
from tests.backends.plans import plan


@pytest.mark.parametrize(
    ("resources", "how", "copies"),
    [
        (f"nodes: 2, ranks_per_node: {MANY_RANKS // 2}", Runtime(), True),
        (f"nodes: {MANY_RANKS}", Runtime(), True),
        (f"nodes: {MANY_RANKS - 1}", Runtime(), False),
        ("nodes: 64, ranks_per_node: 8", Runtime(sees_tmp=False), False),
    ],
)
def test_only_many_ranks_that_see_the_nodes_tmp_get_a_copy(
    resources: str, how: Runtime, copies: bool
) -> None:
    assert bool(node_bundle(plan(resources=resources), how).before) == copies


def _run(folder: Path, wrapper: str, staged: Path) -> str:
    """Which run.py the words start, with which trial."""
    (folder / "run/bundle").mkdir(parents=True, exist_ok=True)
    for bundle in (folder / "run/bundle", Path(f"{staged}.5")):
        if bundle.is_dir():
            (bundle / "run.py").write_text("import os, sys; print(sys.argv, os.environ.get('N'))")
    environ = {
        "PATH": os.environ["PATH"],
        "run": f"{folder}/run",
        "staged": f"{staged}",
        "trial": "/t x",
        "SLURM_NODEID": "5",
    }
    done = subprocess.run(["bash", "-c", wrapper], env=environ, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_wrapper_runs_from_the_copy_and_without_one_from_the_runs_folder(tmp_path: Path) -> None:
    many = node_bundle(plan(resources=f"nodes: {MANY_RANKS}"), Runtime())
    staged = tmp_path / "staged"
    shared = f"['{tmp_path}/run/bundle/run.py', '/t x'] "
    assert _run(tmp_path, many.wrapper(), staged) == f"{shared}None"
    Path(f"{staged}.5").mkdir()
    copied = f"['{staged}.5/run.py', '/t x'] "
    assert _run(tmp_path, many.wrapper(), staged) == f"{copied}None"
    assert _run(tmp_path, many.wrapper("N=$((1 + 1))"), staged) == f"{copied}2"
    few = node_bundle(plan(resources="nodes: 2"), Runtime())
    assert _run(tmp_path, few.wrapper(), staged) == f"{shared}None"
    assert _run(tmp_path, few.wrapper("N=$((1 + 1))"), staged) == f"{shared}2"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's file")
def test_a_copy_that_another_user_put_there_is_not_run(tmp_path: Path) -> None:
    many = node_bundle(plan(resources=f"nodes: {MANY_RANKS}"), Runtime())
    staged = tmp_path / "staged"
    copy = tmp_path / "staged.5"
    copy.mkdir()
    (copy / "run.py").touch()
    os.chown(copy / "run.py", 65534, 65534)
    assert str(copy) not in _run(tmp_path, many.wrapper(), staged)


def test_the_lines_copy_once_per_node_and_remove_it_at_the_end(tmp_path: Path) -> None:
    bundle = tmp_path / "run/bundle/_profrun"
    bundle.mkdir(parents=True)
    (bundle / "x.py").write_text("x")
    binary = tmp_path / "bin"
    binary.mkdir()
    # A stand-in for srun on one node: it runs the words behind its options.
    (binary / "srun").write_text(
        '#!/bin/bash\necho "$*" >>"$RAN"\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n'
    )
    (binary / "srun").chmod(0o755)
    job = f"test{os.getpid()}"
    environ = {
        "PATH": f"{binary}:{os.environ['PATH']}",
        "RAN": f"{tmp_path}/ran",
        "run": f"{tmp_path}/run",
        "SLURM_JOB_ID": job,
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
    }
    lines = node_bundle(plan(resources=f"nodes: {MANY_RANKS}"), Runtime()).before
    seen = 'ls -ld "$staged.0" | cut -c 1-10; cat "$staged.0/_profrun/x.py"; exit 3'
    done = subprocess.run(
        ["bash", "-c", f"{lines}\n{seen}"], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("drwx------\nx", 3), done.stderr
    assert not list(Path("/tmp").glob(f"profrun-{job}.*"))
    assert (tmp_path / "ran").read_text().count("--ntasks-per-node=1 ") == 2
