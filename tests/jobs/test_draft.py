"""Job specs made from a command: split into the same arguments again, complete, commented, loadable."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.options import REQUIRED
from profrun.jobs.draft import Draft, commented_text, job_name, short_text
from profrun.jobs.kinds import BAD
from profrun.jobs.load import load_text
from profrun.jobs.nodes import parse
from profrun.jobs.problems import Problems
from profrun.jobs.schema import JOB
from profrun.jobs.sweep import sweep_of
from profrun.jobs.tables import Table
from profrun.plans.make import make_plan

_ARGUMENTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Zl", "Zp")), max_size=12
)


@given(st.lists(_ARGUMENTS, max_size=6))
def test_a_command_is_split_into_the_arguments_that_were_typed(more: list[str]) -> None:
    argv = ["python", *more]
    (trial, *_) = make_plan(load_text(short_text(Draft.of(argv), "head"))).trials
    assert list(trial.argv) == argv


@pytest.mark.parametrize(
    "word", ["{bs}", "{", "}}", '{"a": 1}', "a b", "it's", "$HOME", "*", "~", "a\nb", "#", "", "\\", "'{x}'"]
)
def test_what_a_shell_or_a_template_would_read_stays_as_it_is(word: str) -> None:
    argv = ["python", word, "-x"]
    assert make_plan(load_text(short_text(Draft.of(argv), ""))).trials[0].argv == tuple(argv)


def test_only_what_was_given_is_in_a_short_spec() -> None:
    draft = Draft.of(
        ["python", "train.py"], sweeps=[sweep_of("bs=8,16")], collectors=["none"], repeats=3, steps=5
    )
    assert short_text(draft, "Head.") == (
        "# Head.\n"
        "name: train\n"
        "command: python train.py --bs {bs}\n"
        "matrix:\n"
        "  bs: [8, 16]\n"
        "collectors: [none]\n"
        "repeats: 3\n"
        "schedule:\n"
        "  active: 5\n"
    )


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        ("python src/train.py --x a.py", "train"),
        ("torchrun --nproc-per-node 2 -m pkg.main", "main"),
        ("torchrun -m torch.distributed.run x/My.Train.py", "My.Train"),
        ("/usr/bin/my-tool", "my-tool"),
        ("./.hidden", "hidden"),
        ("python -c pass", "python"),
        ("ü", "run"),
        ("python " + "x" * 99 + ".py", "x" * 64),
    ],
)
def test_a_job_is_named_after_its_program(argv: str, name: str) -> None:
    assert job_name(argv.split()) == name


def test_a_commented_spec_is_the_job_with_its_defaults() -> None:
    text = commented_text(Draft.of(["python", "train.py"]), ["Head"])
    assert load_text(text) == load_text("name: train\ncommand: python train.py\n")
    assert text.startswith("# Head\n\n# Name of the job;")
    assert max(map(len, text.splitlines())) <= 130


def test_a_commented_spec_with_everything_that_can_be_given() -> None:
    draft = Draft.of(
        ["python", "t.py"],
        name="n",
        sweeps=[sweep_of("bs=8,16")],
        collectors=["none"],
        repeats=2,
        steps=7,
        workdir="..",
    )
    found = load_text(commented_text(draft, []))
    assert found == load_text(short_text(draft, ""))
    assert (found.name, found.repeats, found.schedule.active, found.workdir) == ("n", 2, 7, "..")
    assert list(found.variants) == ["bs_8", "bs_16"]


def test_a_commented_spec_has_every_key_with_its_meaning_and_a_value_that_fits() -> None:
    text = commented_text(Draft.of(["python", "train.py"]), [])
    joined = re.sub(r"\n# ", " ", text)
    for key, field in JOB.fields.items():
        line = next((line for line in text.splitlines() if re.match(rf"(# )?{key}:", line)), None)
        if line is None:
            assert f" {key}," in joined or f" {key}." in joined  # named at the end, with the page
            continue
        assert field.doc in joined
        value = line.partition(":")[2].strip()
        if isinstance(field.kind, Table):
            keys = re.findall(r"^(?:# )?  (\w+):", text.partition(f"{line}\n")[2].partition("\n\n")[0], re.M)
            assert keys == list(field.kind.fields)
        elif value:
            problems = Problems("x")
            assert field.kind.read(parse(value, problems), key, problems) is not BAD
        else:
            assert field.default is None
            assert field.default is not REQUIRED
