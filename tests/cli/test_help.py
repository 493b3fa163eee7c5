"""Help pages: 80 columns, names of values in capitals, and examples that work."""

from __future__ import annotations

import io
import itertools
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from profrun.cli import app
from profrun.cli.app import COMMANDS, load_command, module_of
from profrun.cli.help import Command
from profrun.contract.line_names import Line, line_name
from tests.cli.running import Capture, call
from tests.cli.sides import write_trial
from tests.conftest import ROOT
from tests.runner.scripted import begin, leave, new_run
from tests.tracekit import make_trace

NAMES = [name for section in COMMANDS.values() for name in section]
EXAMPLES = [
    *(("", *pair) for pair in app.EXAMPLES),
    *((name, *pair) for name in NAMES for pair in getattr(module_of(name), "EXAMPLES", ())),
]
LINES = [line for _, line, _ in EXAMPLES]
OTHER = re.compile(r"run-[ab]|rank0|results.db|--explain|/data/|compare a vs b|--no-browser|blocking last")
"""Examples with files, folders or runs that the folder of the tests has not, or that wait for a browser."""


def pages() -> Iterator[list[str]]:
    """The words of every command: ``["baseline", "save"]``."""
    for name in NAMES:
        yield [name]
        yield from ([name, below] for below in getattr(load_command(name), "commands", {}))


PAGES = list(pages())


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_a_page_fits_80_columns_and_ends_with_examples(
    words: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = call(capsys, *words, "--help").out
    assert max(map(len, out.splitlines())) <= 80
    assert f"\nExamples:\n  profrun {' '.join(words)}" in out
    assert "<str>" not in out
    assert "<path>" not in out


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_values_have_names_in_capitals(words: list[str]) -> None:
    command = load_command(words[0])
    for word in words[1:]:
        command = command.commands[word]
    if hasattr(command, "commands"):
        return
    for parameter in command.params:
        if parameter.metavar is not None:
            letters = re.sub(r"\bvs\b|[^A-Za-z]", "", parameter.metavar)
            assert letters.isupper(), parameter.metavar


def words_of(line: str) -> list[str]:
    """The words that profrun is given: without a pipe or a redirection of the shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("|<>"), lexer))[1:]


@pytest.mark.parametrize(("name", "line", "means"), EXAMPLES, ids=LINES)
def test_an_example_is_a_line_that_profrun_understands(
    name: str, line: str, means: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real command line reads it; only the command itself is not carried out."""
    called: list[str] = []
    monkeypatch.setattr(Command, "invoke", lambda self, ctx: called.append(ctx.command_path))
    done = call(capsys, *words_of(line))
    assert (done.code, done.err) == (0, "")
    assert len(called) == 1
    assert line.startswith(called[0])
    assert name in ("", called[0].split()[1])
    assert (len(line) <= 76, means.endswith(".")) == (True, False)


NOT_RUN = {
    "submit": "starts programs of the user",
    "run": "starts programs of the user",
    "improve": "starts programs of the user; tests/cli/test_improve.py",
    "demo": "starts programs that need torch",
    "cancel": "nothing runs",
    "resume": "nothing is left to run",
    "doctor": "looks at the machine; tests/cli/test_doctor.py",
    "images": "needs an engine; tests/real/docker",
}
"""Commands whose examples are not carried out here, and why."""
FILES = ("trace.json.gz", "a.json.gz", "b.json.gz")
RECORDING = ROOT / "tests/data/h200/transformer/baseline-torch-r3/rank0/pt.trace.json.gz"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of five variants, twice each, with a job file and recordings."""
    folder = tmp_path_factory.mktemp("project")
    variants = "{eager: {}, fast: {}, main: {}, old: {}, new: {}}"
    spec = f"name: mlp\ncommand: python x.py\nvariants: {variants}\ncollectors: [none]\nrepeats: 2\n"
    run, plan = new_run(folder / "runs", spec)
    for trial in plan.trials:
        paths = begin(run.trial(trial.id))
        run.log().append("started", trial.id, attempt=1, handle={"backend": "local", "data": {}})
        write_trial(paths.trace, 1_000_000 + 1000 * trial.index, 500_000, trial.index)
        leave(paths)
        paths.stdout.write_text("hello\n")
    run.log().append("done", state="finished")
    run.path.rename(run.path.with_name("mlp-20261122T014813Z-00ff"))
    (folder / "job.yaml").write_text(spec)
    (folder / "question.sql").write_text("SELECT 1")
    (folder / "jobs").mkdir()
    for number, name in enumerate(("before", "after")):
        write_trial(folder / name, 1_000_000 + 1000 * number, 500_000, number)
    for file in FILES:
        shutil.copy(RECORDING, folder / file)
    return folder


SLOW = ("open", "report", "compare", "query")
"""Their examples read whole recordings; the tests of these commands do so, too."""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=[pytest.mark.thorough] if line.split()[1] in SLOW else [])
        for _, line, _ in EXAMPLES
        if line.split()[1] not in NOT_RUN and not OTHER.search(line)
    ],
)
def test_an_example_works(
    line: str, project: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(project, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    for name in ("PROFRUN_RUNS", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1"))
    if line.startswith("profrun baseline compare"):
        call(capsys, "baseline", "save", "main", "last/main-none")
    if line.startswith("profrun init train.py"):
        Path("job.yaml").unlink()
    if "--by line" in line or "kernel_address" in line:
        trace = next(Path("runs").glob("*/trials/001-*/trace"))
        shutil.rmtree(trace)
        make_trace(trace, [("range", line_name(Line("train.py", 3, "main")), 0, 10, "main")]).close()
    done = call(capsys, *words_of(line), *(["--yes"] if re.match("profrun (rm|prune)", line) else []))
    assert done.code in ((0, 1, 2) if "compare" in line or "blocking" in line else (0,)), done.err
