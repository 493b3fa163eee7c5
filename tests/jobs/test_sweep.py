"""``--variant``: what is typed, what the command gets, and what is refused."""

from __future__ import annotations

import pytest

from profrun.errors import UsageError
from profrun.jobs.draft import Draft, short_text
from profrun.jobs.load import load_text
from profrun.jobs.sweep import sweep_of
from profrun.plans.make import make_plan


def commands(argv: str, *variants: str) -> dict[str, str]:
    """Variant -> its command line, of what ``profrun run`` writes and plans."""
    draft = Draft.of(argv.split(), sweeps=[sweep_of(text) for text in variants], collectors=["none"])
    return {
        trial.variant: " ".join(trial.argv) for trial in make_plan(load_text(short_text(draft, ""))).trials
    }


@pytest.mark.parametrize(
    ("argv", "variants", "found"),
    [
        ("run t.py", ["bs=8,16"], {"bs_8": "run t.py --bs 8", "bs_16": "run t.py --bs 16"}),
        ("run --bs={bs} t.py", ["bs=8,16"], {"bs_8": "run --bs=8 t.py", "bs_16": "run --bs=16 t.py"}),
        ("run t.py", ["-b=8"], {"b_8": "run t.py -b 8"}),
        ("run t.py", ["batch-size=8"], {"batch_size_8": "run t.py --batch-size 8"}),
        ("run t.py", ["lr=1e-3,0.10"], {"lr_1e_3": "run t.py --lr 1e-3", "lr_0.10": "run t.py --lr 0.10"}),
        ("run t.py", ["amp=true,no"], {"amp_true": "run t.py --amp true", "amp_no": "run t.py --amp no"}),
        ("run t.py", ["text=a b"], {"text_a_b": "run t.py --text a b"}),
        ("run t.py", ["compile"], {"no_compile": "run t.py", "compile": "run t.py --compile"}),
        ("run {compile} t.py", ["compile"], {"no_compile": "run t.py", "compile": "run --compile t.py"}),
        (
            "run t.py",
            ["bs=8,16", "compile"],
            {
                "bs_8-no_compile": "run t.py --bs 8",
                "bs_8-compile": "run t.py --bs 8 --compile",
                "bs_16-no_compile": "run t.py --bs 16",
                "bs_16-compile": "run t.py --bs 16 --compile",
            },
        ),
    ],
)
def test_each_variant_has_its_argument(argv: str, variants: list[str], found: dict[str, str]) -> None:
    assert commands(argv, *variants) == found


def test_a_value_with_a_space_stays_one_argument() -> None:
    draft = Draft.of(["run", "x={t}y"], sweeps=[sweep_of("t=a b,it's"), sweep_of("uu=c d")])
    plan = make_plan(load_text(short_text(draft, "")))
    assert [trial.argv for trial in plan.trials[:2]] == [
        ("run", "x=a by", "--uu", "c d"),
        ("run", "x=it'sy", "--uu", "c d"),
    ]


@pytest.mark.parametrize(
    ("argv", "variant", "said"),
    [
        (
            "run t.py --bs 4",
            "bs=8,16",
            "--variant bs=8,16: the command has --bs already; write '{bs}' in place of its value",
        ),
        (
            "run t.py --batch-size=4",
            "batch_size=8",
            "--variant batch_size=8: the command has --batch_size",
        ),
        ("run t.py --compile", "compile", "--variant compile: the command has --compile already; replace"),
        (
            "run t.py -- a",
            "bs=8",
            "--variant bs=8: the end of the command may not be the place for --bs: it",
        ),
        (
            "bash x.sh",
            "bs=8",
            "--variant bs=8: the end of the command may not be the place for --bs: a",
        ),
        (
            "run t.py",
            "b=8",
            "--variant b=8: is the argument -b or --b?; write it with its dashes",
        ),
        ("run t.py", "bs=8,", "--variant bs=8,: a value is empty; write one like --variant bs=8,16"),
        ("run t.py", "bs=8,8", "--variant bs=8,8: 8 is given twice; give each value once"),
        (
            "run t.py",
            "model.lr=1",
            "--variant model.lr=1: 'model.lr' cannot be the name of an argument;",
        ),
        ("run t.py", "=1", "--variant =1: '' cannot be the name of an argument; write one like"),
    ],
)
def test_what_is_not_clear_is_refused(argv: str, variant: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        commands(argv, variant)
    assert str(caught.value).startswith(said)
