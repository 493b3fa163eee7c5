"""What an improvement gave, as text of 80 columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profrun.reports.improve_text import (
    answer,
    cells,
    improvement_parts,
    next_command,
    permanent,
    ranked,
    told,
)
from profrun.reports.terminal_layout import Style, lay_out
from profrun.store.improvement import ExperimentResult, Improvement, Promised, SameAnswer

MS = 1_000_000
LOADER = ExperimentResult(
    "loader-workers-4",
    ("loader-workers=4",),
    promises=(Promised("dataloader-stall", 12 * MS, 0.4),),
    state="proven",
    ratio=0.65,
    interval=(0.62, 0.68),
    p_value=0.0002,
    rounds=3,
    base_ns=30 * MS,
    step_ns=round(19.5 * MS),
    start_ns=200 * MS,
    same=SameAnswer("same", "loss", 0.0, 1e-5, "loss exactly the same"),
    said=("loader-workers=4: 1 DataLoader got 4 worker processes",),
    explained=("idle of the GPU: -10 ms",),
)
DIFFERS = "not the same: the loss differs by 3.1 % at value 7 (tolerance 2.0 %)"
EXPERIMENTS = (
    ExperimentResult("nothing-1", ("nothing=1",), state="planned"),
    ExperimentResult(
        "autocast-bfloat16",
        ("autocast=bfloat16",),
        promises=(Promised("fp32-gemm", 15 * MS, 0.5), Promised("memory-bound")),
        state="not the same",
        ratio=0.6,
        interval=(0.55, 0.66),
        rounds=4,
        base_ns=30 * MS,
        step_ns=18 * MS,
        same=SameAnswer("differs", "loss", 0.031, 0.02, DIFFERS),
        why=DIFFERS,
    ),
    LOADER,
    replace(
        LOADER,
        name="compile-default",
        changes=("compile=default",),
        promises=(),
        ratio=0.9,
        interval=(0.88, 0.93),
        start_ns=42_000 * MS,
        same=SameAnswer("unknown", text="it is not known whether it computes the same: nothing was seen"),
    ),
    ExperimentResult("cuda-graphs", ("cuda-graphs",), state="no gain", ratio=1.001, interval=(0.99, 1.01)),
    ExperimentResult(
        "cpu-threads-4", ("cpu-threads=4",), state="not proven", ratio=0.97, interval=(0.8, 1.1)
    ),
    ExperimentResult("set-to-none", ("set-to-none",), state="slower", ratio=1.2, interval=(1.1, 1.3)),
    ExperimentResult(
        "fused-optimizer",
        ("fused-optimizer",),
        promises=(Promised("unfused-optimizer", MS, 0.03),),
        state="not applied",
        ratio=1.0,
        interval=(0.98, 1.02),
        why="the program made no optimizer of torch.optim",
    ),
    ExperimentResult("channels-last", ("channels-last",), state="failed", why="exit code 1"),
    ExperimentResult("tf32", ("tf32",), state="not tried", why="the budget of 20 min is too short for it"),
)
FOUND = Improvement(
    "train-1",
    "base",
    EXPERIMENTS,
    replace(
        LOADER,
        name="together",
        changes=("loader-workers=4", "compile=default"),
        values={"batch": 64},
        ratio=0.6,
        interval=(0.57, 0.63),
        rounds=4,
        step_ns=18 * MS,
        same=SameAnswer("same", "loss", 2e-4, 1e-3, "loss within 2e-4"),
    ),
    ("attention-math",),
    "train-experiments-1",
    "train-together-1",
    budget_s=1200.0,
    step_ns=30 * MS,
    done=True,
)
NOT_TOGETHER = (
    "step 30 ms -> 19.5 ms, 0.5 % faster (-38.0 to -32.0 %, 3 rounds of new trials), no gain, "
    "with loader-workers=4"
)
GOLDEN = """\
  step 30 ms -> 18 ms, 40.0 % faster (-43.0 to -37.0 %, 4 rounds of new trials),
    proven, with loader-workers=4 and compile=default
  loss within 2e-4
  8 experiments, 2 proven to help
  left out, because a better one excludes it: attention-math

  experiment          promised  measured     interval 95 %  verdict
  loader-workers-4   <= 40.0 %   -35.0 %  -38.0 to -32.0 %  proven
  compile-default            -   -10.0 %   -12.0 to -7.0 %  proven
  autocast-bfloat16  <= 50.0 %   -40.0 %  -45.0 to -34.0 %  not the same
  cuda-graphs                -    +0.1 %    -1.0 to +1.0 %  no gain
  cpu-threads-4              -    -3.0 %  -20.0 to +10.0 %  not proven
  set-to-none                -   +20.0 %  +10.0 to +30.0 %  slower
  fused-optimizer     <= 3.0 %     0.0 %    -2.0 to +2.0 %  not applied
  channels-last              -         -                 -  failed
  tf32                       -         -                 -  not tried
  nothing-1                  -         -                 -  planned
  compile-default: 42 s longer outside of its steady steps (compiling, starting)
  compile-default: it is not known whether it computes the same: nothing was
    seen
  autocast-bfloat16: faster, but not the same: the loss differs by 3.1 % at
    value 7 (tolerance 2.0 %)
  fused-optimizer: the program made no optimizer of torch.optim
  channels-last: exit code 1
  tf32: the budget of 20 min is too short for it

To keep what helped
  loader-workers=4: DataLoader(..., num_workers=4, persistent_workers=True,
      pin_memory=True)
  compile=default: model.compile(mode="default")
  values: batch: 64
"""


def text_of(found: Improvement) -> str:
    """As a terminal of 80 columns without colours shows it."""
    return lay_out(improvement_parts(found), Style(80)) + "\n"


def test_all_of_it() -> None:
    shown = text_of(FOUND)
    assert shown == GOLDEN
    assert max(map(len, shown.splitlines())) <= 80


def test_what_helped_stands_first_the_largest_gain_before_the_others() -> None:
    names = [one.name for one in ranked(EXPERIMENTS)]
    assert names[:3] == ["loader-workers-4", "compile-default", "autocast-bfloat16"]
    assert names == [one.name for one in ranked(EXPERIMENTS[::-1])]


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (Improvement("r", "base"), ["no finding asks for an experiment, so nothing was tried"]),
        (
            Improvement("r", "base", (replace(LOADER, state="no gain"),), step_ns=30 * MS),
            ["1 experiment, 0 proven to help; step 30 ms"],
        ),
        (
            replace(
                FOUND,
                experiments=(LOADER, EXPERIMENTS[-1]),
                left_out=(),
                together=ExperimentResult("together", LOADER.changes, state="failed", why="exit code 1"),
            ),
            ["loader-workers=4 together: failed, exit code 1", "1 experiment, 0 proven to help"],
        ),
        (
            replace(
                FOUND,
                experiments=(LOADER,),
                left_out=(),
                together=replace(LOADER, state="no gain", ratio=0.995),
            ),
            [
                NOT_TOGETHER,
                "loss exactly the same",
                "1 experiment, 0 proven to help",
            ],
        ),
    ],
)
def test_the_answer(found: Improvement, lines: list[str]) -> None:
    assert answer(found) == lines
    assert permanent(found) == []


@pytest.mark.parametrize(
    ("found", "command"),
    [
        (replace(FOUND, improved="improved-again"), "profrun improve train-1 --variant improved-again"),
        (
            replace(
                FOUND,
                experiments=(
                    EXPERIMENTS[-1],
                    replace(LOADER, state="not tried"),
                    ExperimentResult("many", values={"workers": 4}, state="not tried"),
                    ExperimentResult("both", ("tf32", "set-to-none"), state="not tried"),
                ),
            ),
            "profrun improve train-1 --only tf32,loader-workers=4,many,both",
        ),
        (replace(FOUND, experiments=(LOADER,)), None),
    ],
)
def test_the_command_that_goes_on(found: Improvement, command: str | None) -> None:
    assert next_command(found) == command


def test_the_lines_of_the_base_are_kept_with_what_helped() -> None:
    found = replace(FOUND, base_changes=("set-to-none", "loader-workers=2"))
    assert [text for text, _ in permanent(found)] == [
        "set-to-none (in the base)",
        "loader-workers=4",
        "compile=default",
        "values",
    ]


def test_own_variants_are_kept_by_their_values() -> None:
    together = replace(LOADER, name="together", changes=(), values={"workers": 4, "batch": 64})
    found = replace(FOUND, together=together)
    assert permanent(found) == [("values", "workers: 4, batch: 64")]
    assert answer(found)[0].endswith("with together")


def test_a_gain_of_which_it_is_not_known_whether_it_is_the_same_is_told() -> None:
    unknown = SameAnswer("unknown", text="it is not known whether it computes the same: nothing was seen")
    assert told(replace(LOADER, same=unknown)) == [unknown.text]
    assert told(replace(LOADER, same=unknown, state="no gain")) == []
    assert told(LOADER) == []


def test_what_was_not_measured_has_no_cells() -> None:
    assert cells(EXPERIMENTS[-1]) == (None, None, None)
    assert cells(LOADER) == ("<= 40.0 %", "-35.0 %", "-38.0 to -32.0 %")
