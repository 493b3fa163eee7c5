"""submit, end to end on this machine with small programs: results, faults, Ctrl-C, kill -9, detach."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profrun.store.state import read_state
from tests.cli.programs import STEPS, WAITS, has_event, last_run, wait_until, write_job
from tests.cli.running import Capture, call, start
from tests.conftest import first


@pytest.mark.thorough
@pytest.mark.usefixtures("maybe_a_gpu")
def test_a_run_lists_what_each_trial_measured(here: Path, capsys: Capture) -> None:
    job = write_job(here, STEPS, "{n}", variants={"a": {"n": 8}, "b": {"n": 9}}, launch_blocking="both")
    done = call(capsys, "submit", job, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert [(t["variant"], t["blocking"], t["repeat"], t["steps"]) for t in found["trials"]] == [
        ("a", False, 1, 8),
        ("b", False, 1, 9),
        ("a", True, 1, 8),
        ("b", True, 1, 9),
    ]
    for trial in found["trials"]:
        assert trial["state"] == "finished"
        assert trial["collector"] == "none"
        assert 5e6 <= trial["median_step_ns"] < 1e9  # a step sleeps 5 ms
        assert trial["steps_measured"] == 3  # the schedule's active steps
        assert Path(trial["trace"], "meta.json").exists()
    assert found["state"] == "finished"
    again = call(capsys, "status", "last", "--json")
    assert again.json["trials"] == found["trials"]
    assert [(c["kind"], c["a"], c["b"], c["trials"]) for c in found["comparisons"]] == [
        ("variant", "a-none", "b-none", [1, 1]),
        ("blocking", "a-none", "a-none-blocking", [1, 1]),
        ("blocking", "b-none", "b-none-blocking", [1, 1]),
    ]
    assert {c["verdict"] for c in found["comparisons"]} <= {
        "inconclusive",
        "incomparable",
    }  # one trial a side
    shown = call(capsys, "status", "last").out
    refused = r"^  a-none \S+ ms, b-none \S+ ms per step, no verdict: different work"
    assert re.search(refused, shown, re.MULTILINE)
    command = f"    profrun compare {found['run']}/a-none vs {found['run']}/b-none --allow work"
    assert command in shown.splitlines()
    assert "-none-blocking " not in shown
    assert "-none-blocking " in call(capsys, "status", "last", "--verbose").out
    twins = call(capsys, "blocking", "last", "--json")
    assert twins.code == 2  # one trial a side: no interval
    assert [point["variant"] for point in twins.json["points"]] == ["a", "b"]
    assert all(point["timed_by"] == "none" for point in twins.json["points"])
    (listed,) = call(capsys, "runs", "--json").json["runs"]
    assert (listed["run"], listed["finished"], listed["trials"]) == (found["run"], 4, 4)
    assert call(capsys, "logs", "last", "3").out == "done\n"


@pytest.mark.parametrize(
    ("source", "argument", "code", "said"),
    [
        ("x = 1\ndef f(:\n", "8", 1, "work.py, line 2)"),
        ("import sys; sys.exit(3)", "8", 3, "exited with 3"),
        ("import no_such_module_xyz", "8", 1, "no_such_module_xyz"),
        ("import os; os._exit(5)", "8", 5, "exited with 5"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "8", None, "segmentation fault"),
    ],
)
def test_a_broken_program_is_a_failed_trial_with_its_own_code(
    here: Path, capsys: Capture, source: str, argument: str, code: int | None, said: str
) -> None:
    done = call(capsys, "submit", write_job(here, source, argument), "--json")
    (trial,) = done.json["trials"]
    assert (done.code, trial["state"], trial["exit_code"]) == (1, "failed", code)
    logged = call(capsys, "logs", "last").out
    assert said in str(trial["reason"]) + logged
    assert "Traceback" not in done.err


def test_a_missing_script_is_said_before_anything_starts(here: Path, capsys: Capture) -> None:
    job = write_job(here, "")
    (here / "work.py").unlink()
    done = call(capsys, "submit", job)
    assert done.code == 69
    (said,) = done.err.splitlines()
    assert said.startswith(f"profrun: cannot find work.py in {here}: the command runs there, ")
    assert not (here / "runs").exists()
    done = call(capsys, "submit", job, "--set", f"command=python {here}/work.py")
    assert done.code == 1  # an absolute path may lie in an image: only the interpreter can tell
    (said,) = [line for line in done.out.splitlines() if "No such file" in line]
    assert str(here / "work.py") in said


def test_a_program_without_steps_finishes_and_says_so(here: Path, capsys: Capture) -> None:
    done = call(capsys, "submit", write_job(here, "print('hello')"))
    assert done.code == 0
    assert "no step was" in done.out
    assert "hello" in call(capsys, "logs", "last").out


@pytest.mark.long
@pytest.mark.thorough
def test_variants_of_a_bare_loop_are_recorded_and_compared_by_the_time_of_the_run(
    here: Path, capsys: Capture
) -> None:
    loop = """
import sys, torch
torch.set_num_threads(1)
n = int(sys.argv[1])
a, b = torch.randn(n, n), torch.randn(n, n)
for _ in range(200): c = torch.add(torch.matmul(a, b), b)
"""
    variants = {"few": {"n": 32}, "many": {"n": 512}}
    repeats = {"none": 3, "torch": 1}
    job = write_job(here, loop, "{n}", variants=variants, collectors=["none", "torch"], repeats=repeats)
    done = call(capsys, "submit", job, "--json")
    assert done.code == 0, done.err
    trials = done.json["trials"]
    assert {(trial["state"], trial["steps_found_by"], trial["steps"]) for trial in trials} == {
        ("finished", "run", 1)
    }
    assert all(Path(trial["trace"], "meta.json").exists() for trial in trials)
    compared = call(capsys, "compare", "last/few-none", "vs", "last/many-none", "--allow", "work", "--json")
    assert compared.json["ratio"] > 10, "512 cubed is 4096 times 32 cubed"
    recorded = next(trial for trial in trials if trial["collector"] == "torch")
    summary = call(capsys, "summary", recorded["trace"], "--json")
    (mm,) = (row for row in summary.json["ops"] if row["name"] == "aten::mm")
    assert mm["calls"] == 200


BOOSTED = """
import random, sys, time
now, chance = time.perf_counter_ns(), random.Random(1)
time.perf_counter_ns = lambda: now                    # step times that no other work on this machine changes
import torch, profrun
net = torch.nn.Linear(8, 8)
for step in range(int(sys.argv[1])):
    net(torch.zeros(4, 8))
    now += int((8e6 if step < 30 else 9.3e6) * chance.gauss(1, 0.002))
    profrun.step()
"""


@pytest.mark.thorough
def test_the_window_is_put_into_the_steady_phase_that_the_first_trial_has_shown(
    here: Path, capsys: Capture
) -> None:
    """A GPU's boost of 30 steps: the default schedule would record steps 2 to 4."""
    done = call(capsys, "submit", write_job(here, BOOSTED, "400", collectors=["none", "torch"]))
    assert done.code == 0, done.err
    said = (
        r"recorded from step 192 on, in the steady phase: trial 000-default-none-r1 showed that steps 0-29 "
        r"are 1[34].\d % faster than the steady ones: [78]\.?\d* ms per step, not 9.[23]\d* ms; set "
    )
    assert re.search(said, " ".join(done.out.split())), done.out
    assert windows(here) == [[2, 3, 4], [192, 193, 194]]


@pytest.mark.thorough
def test_without_an_unprofiled_trial_the_hook_waits_for_the_steady_state(here: Path, capsys: Capture) -> None:
    more = {"collectors": ["torch"], "schedule": {"wait": "steady"}}
    done = call(capsys, "submit", write_job(here, BOOSTED, "400", **more))
    assert done.code == 0, done.err
    ((first, *_),) = windows(here)
    assert 214 <= first <= 230, "2 s of steps of 9.3 ms"
    assert re.search(
        rf"the window opens at step {first}, after (1\.9\d*|2\.0\d*|2) s, when step times", done.out
    )
    short = call(capsys, "submit", write_job(here, BOOSTED, "100", **more))
    assert short.code == 1
    assert "give a number: --set schedule.wait=72" in short.out


def windows(here: Path) -> list[list[int]]:
    """The steps that each trial of the last run has recorded."""
    files = sorted(last_run(here).path.glob("trials/*/raw/rank0/steps.json"))
    documents = [json.loads(file.read_text()) for file in files]
    return [[row["step"] for row in one["steps"] if row["window"] == "active"] for one in documents]


def test_a_schedule_longer_than_the_program_is_said(here: Path, capsys: Capture) -> None:
    done = call(capsys, "submit", write_job(here, STEPS, "2"))
    assert done.code == 0
    assert "schedule" in done.out
    assert last_run(here).path.exists()


def test_no_torch_in_the_interpreter_is_one_clear_line(here: Path, capsys: Capture) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], check=True)
    write_job(here, STEPS, "8", collectors=["torch"], command="bare/bin/python work.py 8")
    done = call(capsys, "submit", here / "job.yaml", "--json")
    assert done.code == 1
    assert "bare/bin/python has no torch; name an interpreter" in done.json["trials"][0]["reason"]
    assert "Traceback" not in done.out + done.err


@pytest.mark.parametrize("collector", first(1, ["none", "torch"]))
def test_users_own_modules_stay_theirs(here: Path, capsys: Capture, collector: str) -> None:
    """runner.py, jobs/ and images.py beside the script import as theirs, under the wrapper and its hook."""
    names = ("runner", "images", "collectors", "traces", "reports", "analysis", "jobs")
    for name in names[:-1]:
        (here / f"{name}.py").write_text(f"mine = 'my {name}'")
    (here / "jobs").mkdir()
    (here / "jobs/__init__.py").write_text("mine = 'my jobs'")
    source = f"""
import {", ".join(names)}
print(*(module.mine for module in ({", ".join(names)})), sep="\\n")
import profrun
if {collector!r} == "torch":
    import torch
    for _ in range(6):
        torch.ones(2) + 1
        profrun.step()
"""
    done = call(capsys, "submit", write_job(here, source, collectors=[collector]))
    assert done.code == 0, done.out + done.err
    assert call(capsys, "logs", "last").out.splitlines()[: len(names)] == [f"my {name}" for name in names]


def test_one_ctrl_c_ends_well_and_keeps_what_was_collected(here: Path) -> None:
    job = write_job(here, WAITS, "x", repeats=3)
    with start("submit", job, cwd=here) as child:
        wait_until((here / "ran").exists)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=240)
    assert child.returncode == 1, err
    assert err.count("Stopping; saving profiles. Press Ctrl-C again to stop at once.") == 1
    assert out.count("You cancelled it. Recorded data was kept.") == 1
    assert "SIG" not in out + err
    state = read_state(last_run(here))
    assert [t.state for t in state.trials] == ["cancelled", "planned", "planned"]
    assert state.phase == "cancelled"
    assert state.trials[0].steps.count == 8
    assert f"profrun resume {state.run.name}" in out
    assert "Traceback" not in err


def test_two_ctrl_c_end_now(here: Path) -> None:
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS
    with start("submit", write_job(here, stubborn, "x"), cwd=here) as child:
        wait_until((here / "ran").exists)
        child.send_signal(signal.SIGINT)
        wait_until(lambda: has_event(here, "cancelled"))
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=240)
    assert time.monotonic() - began < 45  # the grace is a minute
    assert child.returncode == 1
    assert "Stopping at once." in err
    assert read_state(last_run(here)).trials[0].state == "cancelled"
    assert "Traceback" not in err


def test_a_detached_driver_that_cannot_start_is_said(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "broken").mkdir()
    (here / "broken/profrun.py").write_text("raise SystemExit('no profrun here')")
    monkeypatch.setenv("PYTHONPATH", str(here / "broken"))
    done = call(capsys, "submit", write_job(here, STEPS), "--detach")
    assert done.code == 1
    assert "ended with 1: no profrun here; try `profrun resume" in done.err


@pytest.mark.thorough
def test_a_failed_guess_is_said_and_fails_the_run(here: Path, capsys: Capture) -> None:
    guesses = [{"step_ms": 5000}, {"step_ms": 0.001, "variant": "b"}, {"absent": ["aten::mm"]}]
    variants = {"a": {"n": 8}, "b": {"n": 8}}
    done = call(capsys, "submit", write_job(here, STEPS, "{n}", variants=variants, expect=guesses), "--json")
    assert done.code == 1
    assert done.json["state"] == "finished"
    assert [(g["number"], g["variants"], g["state"]) for g in done.json["expectations"]] == [
        (0, ["a", "b"], "held"),
        (1, ["b"], "refuted"),
        (2, ["a", "b"], "not checked"),
    ]
    shown = call(capsys, "status", "last").out
    assert "3 claims: 1 held, 1 refuted, 1 not checked" in shown
    assert "refuted      median step below 0.001 ms\n" in shown


def test_a_bug_in_an_analysis_does_not_hide_the_run(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setenv("XDG_STATE_HOME", str(here))
    monkeypatch.setattr("profrun.runner.finish.write_findings", bug)
    done = call(capsys, "submit", write_job(here, STEPS), "--json")
    assert done.code == 70
    assert "bug in profrun (KeyError: 'surprise')" in done.err
    assert done.json["trials"][0]["state"] == "finished"


def test_an_unwritable_runs_folder_is_one_line(here: Path, capsys: Capture) -> None:
    (here / "file").touch()
    done = call(capsys, "submit", write_job(here, STEPS), "--runs", here / "file" / "runs")
    assert done.code == 69
    assert done.err.count("\n") == 1
    assert "--runs DIR" in done.err


@pytest.mark.usefixtures("maybe_a_gpu")
def test_dry_run_starts_and_writes_nothing_and_says_the_same_twice(here: Path, capsys: Capture) -> None:
    job = write_job(here, STEPS, env={"MODE": "a b"}, launch_blocking="both")
    first = call(capsys, "submit", job, "--dry-run")
    assert first.code == 0
    assert first.out == call(capsys, "submit", job, "--dry-run").out
    assert not (here / "runs").exists()
    assert f"cd {here}\nexport MODE='a b'\npython work.py 8\n" in first.out
    found = call(capsys, "submit", job, "--dry-run", "--json").json
    assert [t["trial"] for t in found["trials"]] == ["000-default-none-r1", "001-default-none-blocking-r1"]
    assert found["requests"][0]["body"]["argv"][1:] == [
        f"{here}/runs/t-dry-run/bundle/run.py",
        f"{here}/runs/t-dry-run/trials/000-default-none-r1",
    ]


def test_set_overrides_one_value(here: Path, capsys: Capture) -> None:
    job = write_job(here, STEPS, "{n}", variants={"a": {"n": 1}})
    found = call(capsys, "submit", job, "--dry-run", "--json", "--set", "variants.a.n=5").json
    assert found["trials"][0]["command"]["argv"] == ["python", "work.py", "5"]


CLUSTER = {"pvc": "runs", "vendor": "nvidia", "shared": "HERE"}


REFUSED = [
    ("local", {"resources": {"gpus": 512}}, 69, "the job asks for 512 GPUs, and "),
    ("local", {"resources": {"nodes": 2}}, 64, "the job asks for 2 nodes"),
    ("local", {"workdir": "/no/such"}, 69, "workdir /no/such is not a folder here"),
    ("docker", {"mounts": ["/no/such/folder:/data"]}, 69, "/no/such/folder is to be mounted at /data"),
    ("docker", {"mounts": ["~no/such:/data:ro"]}, 69, "/~no/such is to be mounted at /data"),
    ("docker", {"resources": {"gpus": 512}}, 69, "the job asks for 512 GPUs, and "),
    ("docker", {"resources": {"nodes": 2}}, 64, "the job asks for 2 nodes"),
    ("docker", {"mounts": [".:/usr"]}, 64, "cannot be mounted at '/usr'"),
    ("slurm", {"image": "img:1"}, 64, "needs a container runtime"),
    ("slurm", {"cluster": {"shared": "/no/such"}, "image": "none"}, 64, "is not in /no/such"),
    (
        "slurm",
        {"mounts": ["data:/data"], "image": "i:1", "cluster": {"runtime": "pyxis"}},
        69,
        "/data is to be mounted at /data",
    ),
    ("kubernetes", {"image": "i:1"}, 64, "needs a persistent volume claim"),
    ("kubernetes", {"image": "i:1", "cluster": CLUSTER, "mounts": ["/etc:/x"]}, 64, "/etc cannot be mounted"),
    (
        "kubernetes",
        {"image": "i:1", "cluster": CLUSTER, "mounts": ["data:/data"]},
        69,
        "/data is to be mounted at /data",
    ),
    (
        "kubernetes",
        {"image": "i:1", "cluster": {**CLUSTER, "shared": "/no/such"}},
        64,
        "is not in /no/such, which the claim",
    ),
]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["submit", "dry run"])
@pytest.mark.parametrize(("backend", "more", "code", "said"), REFUSED)
def test_it_is_refused_and_nothing_is_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    backend: str,
    more: dict[str, object],
    code: int,
    said: str,
    dry: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PROFRUN_RUNS", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")  # no engine, no scheduler, no cluster
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "python").symlink_to(sys.executable)
    spec = {"name": "t", "command": "python -c pass", "collectors": ["none"], **more}
    (tmp_path / "job.yaml").write_text(json.dumps(spec).replace("HERE", str(tmp_path)))
    done = call(capsys, "submit", "job.yaml", "--backend", backend, *dry)
    (line,) = done.err.strip().splitlines()
    assert (done.code, said in line) == (code, True), line
    assert not (tmp_path / "runs").exists()


def test_without_slurm_no_run_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text("name: t\ncommand: python -c pass\nimage: none\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call(capsys, "submit", "job.yaml", "--backend", "slurm")
    assert (done.code, "there is no sinfo here" in done.err) == (69, True)
    (tmp_path / "sinfo").write_text(
        "#!/bin/sh\necho 'slurm_load_partitions: Unable to contact' >&2\nexit 1\n"
    )
    (tmp_path / "sinfo").chmod(0o755)
    done = call(capsys, "submit", "job.yaml", "--backend", "slurm")
    assert (done.code, "Unable to contact" in done.err) == (69, True)
    assert not (tmp_path / "runs").exists()


def test_what_the_local_backend_leaves_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spec: dict[str, object] = {"name": "t", "command": "python -c pass", "collectors": ["none"]}
    more = {"image": "img:1", "mounts": ["/no/such:/x"], "resources": {"ranks_per_node": 2}}
    (tmp_path / "job.yaml").write_text(json.dumps(spec | more))
    said = call(capsys, "submit", "job.yaml", "--dry-run", "--json").json["left_out"]
    assert [text.split(":")[0] for text in said] == [
        "image img",
        "mounts are not used",
        "the local backend starts the command once",
    ]
    shown = call(capsys, "submit", "job.yaml", "--dry-run").out.splitlines()
    assert [line for line in shown if "# note" in line] == [f"# note: {text}" for text in said]
    (tmp_path / "job.yaml").write_text(json.dumps(spec))
    assert call(capsys, "submit", "job.yaml", "--dry-run", "--json").json["left_out"] == []


def test_options_choose_collectors_repeats_and_variants(here: Path, capsys: Capture) -> None:
    job = write_job(here, STEPS, "{n}", variants={name: {"n": 8} for name in ("a", "b1", "b2", "c")})
    options = ("-c", "torch,none", "-n", "2", "--only", "b*", "--only", "a", "--set", "repeats=1")
    found = call(capsys, "submit", job, *options, "--dry-run", "--json").json
    assert [(trial["variant"], trial["collector"]) for trial in found["trials"]] == [
        (variant, collector) for collector in ("torch", "none") for variant in ("a", "b1", "b2")
    ]  # --set is laid over the short options
    done = call(capsys, "submit", job, "--only", "a,d")
    assert (done.code, done.err) == (
        64,
        "profrun: there is no variant 'd'; variants are: a, b1, b2, c\n",
    )
    done = call(capsys, "submit", job, "-c", "nsy")
    assert done.err.startswith("profrun: --collectors nsy: collectors: 'nsy' is not known; did you mean")


def test_variants_that_were_left_out_stay_out_when_the_run_is_carried_on(here: Path, capsys: Capture) -> None:
    variants = {"a": {"n": 8}, "b": {"n": 8}}
    job = write_job(here, STEPS, "{n}", variants=variants, expect=[{"variant": "b", "step_ms": 1}])
    assert call(capsys, "submit", job, "--only", "a", "--json").code == 0
    again = call(capsys, "resume", "last", "--json")
    assert (again.code, [trial["variant"] for trial in again.json["trials"]]) == (0, ["a"])


def test_paths_count_from_the_folder_of_the_job(
    tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    project, elsewhere = here / "project", here / "elsewhere"
    for folder in (project, project / "data", elsewhere):
        folder.mkdir()
    (project / "names.env").write_text("SECRET_WORD=x\n")
    write_job(project, STEPS, env_file="names.env")
    monkeypatch.chdir(elsewhere)
    done = call(capsys, "submit", "../project/job.yaml", "--json")
    assert (done.code, done.json["state"]) == (0, "finished")
    run = last_run(elsewhere)  # runs are kept where the user is
    assert read_state(run).cwd == project
    for spec in (run.job, run.resolved):  # both repeat the run, wherever they lie
        found = call(capsys, "submit", spec, "--dry-run", "--json").json
        assert found["trials"][0]["command"]["cwd"] == str(project)
    docker = call(
        capsys,
        *("submit", "../project/job.yaml", "--backend", "docker", "--dry-run", "--json"),
        *("--set", "mounts=[data:/data]", "--set", "image=i:1"),
    ).json
    assert f"source={project}/data,target=/data" in docker["requests"][0]["text"]
    (elsewhere / "work.py").write_text(STEPS)
    (elsewhere / "names.env").write_text("SECRET_WORD=x\n")
    here_too = call(capsys, "submit", "../project/job.yaml", "--cwd", ".", "--dry-run", "--json").json
    assert here_too["trials"][0]["command"]["cwd"] == str(elsewhere)
    done = call(capsys, "submit", "../project/job.yaml", "--cwd", "nowhere")
    assert (done.code, done.err) == (
        64,
        "profrun: --cwd nowhere is not a folder; name the folder that the job's paths count from\n",
    )


@pytest.mark.thorough
@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_twins_are_left_out_and_one_line_says_so(here: Path, capsys: Capture) -> None:
    job = write_job(here, STEPS, launch_blocking="both", repeats=2)
    said = "2 launch-blocking twins left out: no GPU"
    assert f"# note: {said}\n" in call(capsys, "submit", job, "--dry-run").out
    assert call(capsys, "submit", job, "--dry-run", "--json").json["left_out"] == [said]
    done = call(capsys, "submit", job, "--json")
    assert [line for line in done.err.splitlines() if "blocking twins" in line] == [f"{job}: {said}"]
    assert [trial["blocking"] for trial in done.json["trials"]] == [False, False]
    assert json.loads(last_run(here).plan.read_text())["left_out"] == [said]
    assert call(capsys, "resume", "last", "--json").code == 0
    assert f"{said}; submit the job on a machine with a GPU" in call(capsys, "blocking", "last").err
    kept = call(
        capsys, "submit", job, "--backend", "docker", "--set", "image=i:1", "--dry-run", "--json"
    ).json
    assert (len(kept["trials"]), kept["left_out"]) == (4, [])


def test_a_python_program_is_no_job(here: Path, capsys: Capture) -> None:
    (here / "train.py").write_text(STEPS)
    done = call(capsys, "submit", "train.py")
    assert done.code == 64
    assert "train.py is a Python program" in done.err
    assert "`profrun run -- python train.py`" in done.err
