"""Whole trials of tiny programs: exit codes, logs, environment, what is refused and why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, missing
from tests.in_job.kit import Trial, fake_importer, fake_nsys, python

WAITS = ("while not pathlib.Path('go').exists(): time.sleep(0.02)",)
IMPORT_CODES = ("report-imported", "import-failed")


def test_exit_code_output_and_provenance_of_a_program(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        python(
            "import os, sys",
            "print('out', os.environ['GREETING'], os.environ.get('CUDA_LAUNCH_BLOCKING'))",
            "print('err', file=sys.stderr); sys.exit(3)",
        ),
        env={"GREETING": "hello", "API_TOKEN": "s3cret"},
    )
    done = trial.run({"CUDA_LAUNCH_BLOCKING": "1", "DATABASE_URL": "postgres://me:pw@db/x"})
    assert (done.code, done.exit["state"], done.exit["exit_code"], done.exit["signal"]) == (
        3,
        "failed",
        3,
        None,
    )
    assert done.log("stdout") == "out hello None\n" == done.stdout
    assert done.log("stderr") == "err\n"
    assert "CUDA_LAUNCH_BLOCKING was set and has been unset" in done.warnings[0]
    written = (done.folder / "provenance.json").read_text()
    assert "s3cret" not in written
    assert "me:pw" not in written
    assert done.provenance["environment"]["API_TOKEN"] == "<redacted>"
    anchors = done.provenance["clocks"]
    assert anchors["end"]["realtime_ns"] > anchors["start"]["realtime_ns"]
    assert not list(done.folder.glob(".*")), "temporary files are left"
    assert not (done.folder / "phase").exists()


def test_ctrl_c_while_the_wrapper_loads_itself_has_no_traceback(tmp_path: Path) -> None:
    """The whole of ``run.py`` but its last lines is carried out; then the signal comes."""
    source = (ROOT / "in_job" / "_run.py").read_text()
    source = source[: source.index("from _profrun")]
    code = f"__file__ = 'x'\n{source}\nimport os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-2, "", "")


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process")
def test_a_wrapper_without_descriptors_says_so_in_one_line(tmp_path: Path) -> None:
    import resource

    trial = Trial(tmp_path, python("import pathlib, time", "print('began')", *WAITS))
    wrapper = trial.start()
    trial.wait_for("began")
    _, hard = resource.prlimit(wrapper.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(wrapper.pid, resource.RLIMIT_NOFILE, (3, hard))
    (trial.work / "go").touch()
    done = trial.finish(wrapper)
    assert "Traceback" not in done.stderr
    assert done.code == 71, done.stderr
    assert "the wrapper cannot go on: [Errno 24] Too many open files" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "state", "exit_code", "number", "wrapper"),
    [
        ("import os; os._exit(7)", "failed", 7, None, 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "failed", None, "SIGSEGV", 139),
        ("pass", "finished", 0, None, 0),
    ],
)
def test_true_ends(
    tmp_path: Path, code: str, state: str, exit_code: int | None, number: str | None, wrapper: int
) -> None:
    done = Trial(tmp_path, python(code)).run()
    found = done.exit
    assert (found["state"], found["exit_code"], found["signal"], done.code) == (
        state,
        exit_code,
        number,
        wrapper,
    )


def test_the_reason_names_the_python_error_and_unstartable_commands(tmp_path: Path) -> None:
    script = Trial(tmp_path, [sys.executable, "job.py"], "x = (1,\ny = 2\n").run()
    assert "SyntaxError" in script.exit["reason"]
    module = Trial(tmp_path, python("import no_such_module")).run()
    assert "ModuleNotFoundError: No module named 'no_such_module'" in module.exit["reason"]
    missing = Trial(tmp_path, ["no-such-command"]).run()
    assert "'no-such-command' was not found" in missing.exit["reason"]
    assert (missing.exit["exit_code"], missing.code) == (None, 127)
    folder = Trial(tmp_path, python("pass"), cwd=str(tmp_path / "nowhere")).run()
    assert "working directory" in folder.exit["reason"]


def test_no_tool_is_one_clear_line_and_its_own_exit_code(tmp_path: Path) -> None:
    done = Trial(tmp_path, python("pass"), collector="ncu", vendor="none").run({"PATH": "/usr/bin:/bin"})
    assert done.code == 69
    assert done.exit["state"] == "failed"
    assert "ncu" in done.exit["reason"]
    assert not (done.folder / "stdout.log").exists(), "the program must not run without its collector"
    counters = Trial(tmp_path, python("pass"), collector="counters", vendor="none").run()
    assert "no counters can be recorded here" in counters.exit["reason"]


def test_the_users_own_modules_and_sitecustomize_stay_theirs(tmp_path: Path) -> None:
    """Nothing of ours but sitecustomize lies on the import path, and it hands over to the image's own."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nos.environ['OWN_SITE'] = 'ran'\n")
    trial = Trial(
        tmp_path,
        python(
            "import os, sys, sitecustomize, run, runner, collectors, bootstrap",
            "print(os.environ['OWN_SITE'], sitecustomize.__file__)",
            "print(run.x, runner.x, collectors.x, bootstrap.x)",
            "import profrun; print(profrun.step.__module__)",
        ),
    )
    for name in ("run", "runner", "collectors", "bootstrap"):
        (trial.work / f"{name}.py").write_text(f"x = '{name} of the user'\n")
    done = trial.run({"PYTHONPATH": str(own)})
    assert done.log("stderr") == ""
    lines = done.log().splitlines()
    assert lines[0] == f"ran {own}/sitecustomize.py"
    assert lines[1] == "run of the user runner of the user collectors of the user bootstrap of the user"
    assert lines[2] == "_profrun.in_job.api"


def test_explicit_steps_without_torch_are_timed(tmp_path: Path) -> None:
    done = Trial(
        tmp_path,
        python(
            "import profrun, time",
            "for n in range(6):",
            "    time.sleep(0.01 * (n == 3))",
            "    profrun.step()",
        ),
    ).run()
    assert done.exit["steps"] == {"how": "explicit", "count": 6}
    steps = done.steps()
    assert [row["window"] for row in steps["steps"]] == [
        "wait",
        "warmup",
        "active",
        "active",
        "outside",
        "outside",
    ]
    assert steps["clock"] == "wall"
    assert steps["steps"][3]["dur_ns"] >= 10_000_000
    assert sorted(steps["steps"], key=lambda row: row["dur_ns"])[-1]["step"] == 3
    assert steps["work"] == {"batch": 4}
    assert any("profrun" in line for line in done.provenance["packages"])


def test_a_program_without_steps_says_why(tmp_path: Path) -> None:
    silent = Trial(tmp_path, python("import time; time.sleep(0.2)")).run()
    assert (silent.exit["state"], silent.exit["steps"]) == ("finished", {"how": "run", "count": 1})
    assert silent.warnings[0].startswith("no step was seen: every number is of the run: no optimizer stepped")
    (run,) = silent.steps()["steps"]
    assert 2e8 < run["dur_ns"] <= 1e9 * silent.exit["seconds"]["app"] + 5e5  # timed from outside
    isolated = Trial(tmp_path, [sys.executable, "-I", "-c", "pass"], variant="b").run()
    assert "no Python process of the command loaded profrun's hook" in isolated.warnings[0]


def test_blocking_sets_the_vendors_variables_and_one_visibility(tmp_path: Path) -> None:
    show = python(
        "import os",
        "print([n for n in sorted(os.environ) if 'BLOCKING' in n or 'SERIALIZE' in n or 'VISIBLE' in n])",
    )
    slurm = {"CUDA_VISIBLE_DEVICES": "2", "ROCR_VISIBLE_DEVICES": "2", "GPU_DEVICE_ORDINAL": "2"}
    nvidia = Trial(tmp_path, show, vendor="nvidia", blocking=True).run(slurm)
    assert nvidia.log() == "['CUDA_LAUNCH_BLOCKING', 'CUDA_VISIBLE_DEVICES']\n"
    amd = Trial(tmp_path, show, vendor="amd", blocking=True).run(slurm)
    assert amd.log() == "['AMD_SERIALIZE_KERNEL', 'HIP_LAUNCH_BLOCKING', 'ROCR_VISIBLE_DEVICES']\n"


@pytest.mark.thorough
def test_a_profiler_that_writes_after_the_app_and_its_export(tmp_path: Path) -> None:
    env = fake_nsys(tmp_path, 0.6)
    done = Trial(tmp_path, python("import time; print('app'); time.sleep(0.3)"), collector="nsys").run(env)
    found = done.exit
    assert (found["state"], found["exit_code"], found["tool_version"]) == ("finished", 0, "2024.2.3")
    assert found["seconds"]["finalise"] >= 0.4
    assert [(row["path"], row["state"]) for row in found["artefacts"]] == [
        ("raw/rank0/report.nsys-rep", "whole"),
        ("raw/rank0/report.sqlite", "whole"),
        ("raw/rank0/steps.json", "whole"),
    ]
    assert found["argv"][1] == "profile"
    assert not [text for text in done.warnings if "importer" in text]  # the report is there: no news
    failed = Trial(tmp_path, python("import sys; sys.exit(3)"), collector="nsys").run(env)
    assert (failed.exit["exit_code"], failed.code) == (3, 3)
    crashed = Trial(tmp_path, python("import os; os.abort()"), collector="nsys").run(env)
    assert (crashed.exit["exit_code"], crashed.exit["signal"]) == (None, "SIGABRT")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("failures", "tries", "state", "codes", "files"),
    [
        (0, 1, "finished", ["report-imported"], ["report.nsys-rep", "report.sqlite", "steps.json"]),
        (2, 3, "finished", ["report-imported"], ["report.nsys-rep", "report.sqlite", "steps.json"]),
        (3, 3, "failed", ["import-failed"], ["*.nsys-rep", "*.sqlite", "report.qdstrm", "steps.json"]),
    ],
)
def test_a_stream_without_a_report_is_imported_in_up_to_three_attempts(
    tmp_path: Path, failures: int, tries: int, state: str, codes: list[str], files: list[str]
) -> None:
    env, tried = fake_nsys(tmp_path, 0.1, unfinished=True), fake_importer(tmp_path, failures)
    done = Trial(tmp_path, python("print('app')"), collector="nsys").run(env)
    assert (done.exit["state"], int(tried.read_text())) == (state, tries)
    assert [row["code"] for row in done.exit["warnings"] if row["code"] in IMPORT_CODES] == codes
    assert sorted(row["path"] for row in done.exit["artefacts"]) == [f"raw/rank0/{name}" for name in files]
    if state == "failed":
        assert "AnalysisFailed" in str(done.exit["warnings"])
        assert "was not found or failed" in done.exit["reason"]


@pytest.mark.parametrize(
    ("lost", "lost_code", "starts", "state", "code", "printed"),
    [
        (1, 1, 2, "finished", 0, 1),
        (1, 0, 2, "finished", 0, 1),  # the real one has ended so: 1 of 1280 starts
        (2, 1, 3, "finished", 0, 1),
        (3, 1, 3, "failed", 127, 0),
    ],
)
def test_a_profiler_that_fails_before_the_program_is_started_again(
    tmp_path: Path, lost: int, lost_code: int, starts: int, state: str, code: int, printed: int
) -> None:
    env = fake_nsys(tmp_path, 0.1, lost_starts=lost, lost_code=lost_code)
    done = Trial(tmp_path, python("print('app')"), collector="nsys").run(env)
    assert (done.exit["state"], done.code) == (state, code)
    assert (tmp_path / "nsys-starts").stat().st_size == starts
    assert done.log().splitlines().count("app") == printed
    (told,) = [text for text in done.warnings if "started again" in text]
    assert told.startswith("nsys failed before it started the program, and was started again: End of file")
    if state == "failed":
        said = "nsys failed before it started the program, in 3 attempts: End of file"
        assert (done.exit["code"], done.exit["reason"]) == ("not-started", said)


@pytest.mark.thorough
def test_a_profiler_that_waits_for_ever_before_the_program_is_ended_and_started_again(tmp_path: Path) -> None:
    """The real one did: it waited for hours, up to the time limit, and the program had never begun."""
    env = fake_nsys(tmp_path, 0.1, lost_starts=1, hang_s=300)
    done = Trial(tmp_path, python("print('app')"), collector="nsys").run(env)
    assert (done.exit["state"], done.code) == ("finished", 0)
    assert (tmp_path / "nsys-starts").stat().st_size == 2
    assert done.log().splitlines().count("app") == 1
    assert [text for text in done.warnings if "started again: End of file" in text]


@pytest.mark.parametrize(
    ("name", "starts", "state"), [("python3", 2, "finished"), ("sh", 1, "failed")], ids=["python", "other"]
)
def test_a_python_that_has_not_loaded_the_hook_has_not_begun(
    tmp_path: Path, name: str, starts: int, state: str
) -> None:
    """nsys' library may end the program's process before it begins, when the agent is gone.

    Of another program than Python nobody knows whether it had begun: it is not run a second time.
    """
    waits = tmp_path / name  # a process with the program's command line that does nothing for 0.3 s
    shutil.copy("/bin/sleep", waits)
    at_loss = f"subprocess.Popen(rest, executable={str(waits)!r}).wait()"
    trial = Trial(tmp_path, [sys.executable, "0.3"], collector="nsys")
    (trial.work / "0.3").write_text("print('app')")
    done = trial.run(fake_nsys(tmp_path, 0.1, lost_starts=1, at_loss=at_loss))
    assert (tmp_path / "nsys-starts").stat().st_size == starts
    assert done.exit["state"] == state
    assert done.log().splitlines().count("app") == starts - 1


def test_a_program_that_prints_what_nsys_would_runs_once(tmp_path: Path) -> None:
    """It was started: nsys' own words in its output do not start it again."""
    code = "import os; open('runs', 'a').write('x'); print('End of file', flush=True); os._exit(1)"
    trial = Trial(tmp_path, python(code), collector="nsys")
    done = trial.run(fake_nsys(tmp_path, 0.1))
    assert (done.exit["exit_code"], done.exit["code"]) == (1, "program-failed")
    assert (trial.work / "runs").read_text() == "x"


def test_a_full_disk_loses_output_but_not_exit_json(tmp_path: Path) -> None:
    """A disk of 80 MiB that the program fills before it prints: what is lost is counted, the end is known."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(small)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        missing("the right to mount a small disk")
    try:
        done = Trial(
            small,
            python(
                "import sys",
                "try:",
                "    with open('fill', 'wb', buffering=0) as file:",
                "        while file.write(bytes(1 << 16)): pass",
                "except OSError as error: print(error.errno, file=sys.stderr)",
                "sys.stdout.write('x' * 300000)",
            ),
        ).run()
        assert done.exit["state"] == "finished"
        assert any("bytes of output could not be written" in text for text in done.warnings)
        assert done.stdout == "x" * 300000, "our own stream is not on that disk"
        assert "packages" in done.provenance
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_orphans_are_ended_and_named(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '87']); print('left', flush=True)"
    done = Trial(tmp_path, python(code)).run()
    assert done.exit["state"] == "finished"
    assert any("1 process was left running" in text and "sleep 87" in text for text in done.warnings)
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 87" not in listing.splitlines()


def test_preflight_alone_prints_one_json_document(tmp_path: Path) -> None:
    trial = Trial(tmp_path, python("pass"))
    done = subprocess.run(
        [sys.executable, str(trial.bundle / "run.py"), "--preflight", "none,nsys,timeline", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **fake_nsys(tmp_path)},
    )
    answer = json.loads(done.stdout)
    assert answer["collectors"]["none"]["usable"]
    assert answer["collectors"]["nsys"]["version"] == "2024.2.3"
    assert set(answer) == {"format", "vendor", "vendor_by", "gpus", "collectors"}


def test_an_unreadable_trial_folder_is_bad_data(tmp_path: Path) -> None:
    trial = Trial(tmp_path, python("pass"))
    (trial.folder / "command.json").write_text('{"half": ')
    done = trial.finish(trial.start())
    assert done.code == 65
    assert "command.json" in done.stderr
