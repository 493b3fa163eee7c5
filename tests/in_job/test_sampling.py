"""The sampler of whole trials: it is there as long as the program, and nobody notices it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from profrun.contract.command import Command
from profrun.contract.recording import Rank
from profrun.contract.sampling import DEFAULT_RATE
from profrun.in_job.sampling import sampler_argv, sampler_env
from tests.in_job.kit import Trial, python
from tests.in_job.sampled import library, samples, values

SPIN = "import time; end = time.time() + 2\nwhile time.time() < end: pass"


def test_how_it_is_started() -> None:
    one = sampler_argv("/py", Path("/b"), Path("/t/000"), 10.0, "nvidia", Rank(0, 0, 1))
    words = "/py -I -S -B /b/sampler.py /t/000 --rate 10 --vendor nvidia"
    assert one == words.split()
    many = sampler_argv("/py", Path("/b"), Path("/t/000"), 0.5, "none", Rank(8, 0, 16))
    words = "/py -I -S -B /b/sampler.py /t/000 --rate 0.5 --vendor none --all"
    assert many == words.split()


def test_it_has_the_program_s_gpus_and_nothing_else_of_its_environment() -> None:
    base = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": "0"}
    program = {"PATH": "/env/bin", "PYTHONPATH": "/x", "CUDA_VISIBLE_DEVICES": "3"}
    assert sampler_env(base, program) == {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "3"}


def test_the_default_rate_is_one() -> None:
    told = Command(trial="t", run="r", job="j", variant="v", collector="none", argv=(), cwd="/")
    assert told.sample == DEFAULT_RATE


@pytest.mark.thorough
def test_gpus_and_host_are_sampled_while_the_program_runs(tmp_path: Path) -> None:
    nvml = library(tmp_path, "nvml")
    script = "import time; t = time.time_ns()\n" + SPIN + "\nprint(t, time.time_ns())"
    trial = Trial(tmp_path, python(script), vendor="nvidia")
    done = trial.run({"PROFRUN_TEST_GPU_LIBRARY": str(nvml), "NVML_GPUS": "2", "CUDA_VISIBLE_DEVICES": "1"})
    assert done.exit["state"] == "finished"
    assert not [told for told in done.exit["warnings"] if told["code"] in ("gpus-not-sampled", "stray")]
    began, ended = map(int, done.stdout.split())
    header, rows = samples(done.folder)
    assert header.rate == 10.0
    assert [(source.kind, source.index) for source in header.sources] == [("gpu", 1), ("host", None)]
    assert rows[0][0] < began
    assert rows[-1][0] > ended
    gpu = [row for row in rows if row[1] == 0]
    first, last = gpu[0], gpu[-1]
    joule = values(header.sources[0], last)["energy"] - values(header.sources[0], first)["energy"]
    assert joule / ((last[0] - first[0]) / 1e9) == pytest.approx(700, rel=0.02)
    host = [row for row in rows if row[1] == 1 and began < row[0] < ended]
    own = [values(header.sources[1], row)["cpu_own"] for row in host]
    assert max(value for value in own if value is not None) > 0.2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_the_wrapper_and_not_before(tmp_path: Path, number: signal.Signals) -> None:
    """The wrapper's signals are for the program. A killed wrapper leaves what was sampled until then."""
    trial = Trial(tmp_path, python("import os, time; print(os.getpid(), 'up'); time.sleep(600)"))
    process = trial.start(start_new_session=True)
    trial.wait_for("up")
    header, _ = samples(trial.folder)
    program = int((trial.folder / "stdout.log").read_text().split()[0])
    os.killpg(process.pid, number)
    trial.finish(process)
    wait_until_gone(header.pid)
    with contextlib.suppress(ProcessLookupError):  # of a killed wrapper it lives on
        os.kill(program, signal.SIGKILL)
    _, rows = samples(trial.folder)
    assert rows


@pytest.mark.thorough
def test_what_the_program_leaves_behind_is_ended_and_the_sampler_is_not(tmp_path: Path) -> None:
    script = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(0.5)"
    done = Trial(tmp_path, python(script)).run()
    (told,) = (told for told in done.exit["warnings"] if told["code"] == "processes-left")
    assert "sleep 600" in str(told)
    assert "sampler" not in str(told)


def test_a_gpu_without_its_library_is_told_once(tmp_path: Path) -> None:
    nowhere = {"PROFRUN_TEST_GPU_LIBRARY": str(tmp_path / "nowhere.so")}
    done = Trial(tmp_path, python("pass"), vendor="nvidia").run(nowhere)
    (told,) = (told for told in done.exit["warnings"] if told["code"] == "gpus-not-sampled")
    assert told["severity"] == "info"
    header, _ = samples(done.folder)
    assert [source.kind for source in header.sources] == ["host"]
    quiet = Trial(tmp_path, python("pass"), vendor="none").run(nowhere)
    assert not [told for told in quiet.exit["warnings"] if "sampl" in told["code"]]


def test_the_wrappers_of_a_host_s_ranks_are_all_of_the_program(tmp_path: Path) -> None:
    """Rank 0 waits; rank 1, below a wrapper of its own, keeps a core busy."""
    spin = f"import os\nif os.environ['RANK'] == '1':\n exec({SPIN!r})\nelse:\n import time; time.sleep(2)"
    trial = Trial(tmp_path, python(spin), ranks=2)
    ranks = [
        trial.start({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}) for rank in range(2)
    ]
    done, _ = (trial.finish(process) for process in ranks)
    assert done.exit["state"] == "finished"
    header, rows = samples(done.folder)
    own = [values(header.sources[0], row)["cpu_own"] or 0.0 for row in rows]
    assert max(own) > 0.2


def test_off_is_none(tmp_path: Path) -> None:
    done = Trial(tmp_path, python("pass"), sample=0.0).run()
    assert not list(done.folder.glob("samples*"))


def test_only_the_first_rank_of_a_host_samples(tmp_path: Path) -> None:
    trial = Trial(tmp_path, python("pass"))
    trial.run({"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"})
    assert not list(trial.folder.glob("samples*"))


def wait_until_gone(pid: int) -> None:
    """Until there is no process of this id."""
    deadline = time.monotonic() + 120
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
