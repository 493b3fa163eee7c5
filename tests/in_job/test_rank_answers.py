"""What the ranks of a trial say, put together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from profrun.contract.codec import to_json
from profrun.contract.exit import Artefact, Exit
from profrun.contract.finding import Finding
from profrun.contract.paths import TrialPaths
from profrun.in_job.rank_answers import Stop, gathered, merge, rank_list, read_answers, silent
from profrun.store.files import write_json


def test_the_worse_rank_decides() -> None:
    warning, other_warning = Finding("a", "warning", "A"), Finding("b", "warning", "B")
    own = Exit(
        "t",
        "finished",
        exit_code=0,
        artefacts=(Artefact("x", 1, "whole"),),
        ranges_emitted=2,
        warnings=(warning,),
        nodes=("n2",),
    )
    other = Exit(
        "t",
        "failed",
        rank=3,
        exit_code=9,
        reason="boom",
        code="program-failed",
        stopped_by="SIGTERM",
        artefacts=(Artefact("y", 2, "whole"),),
        ranges_emitted=5,
        warnings=(warning, other_warning),
        nodes=("n1",),
    )
    assert merge(own, other) == Exit(
        "t",
        "failed",
        exit_code=9,
        stopped_by="SIGTERM",
        code="program-failed",
        reason="rank 3: boom",
        artefacts=(Artefact("x", 1, "whole"), Artefact("y", 2, "whole")),
        ranges_emitted=7,
        warnings=(warning, Finding("b", "warning", "rank 3: B")),
        nodes=("n1", "n2"),
    )


def test_a_rank_that_says_nothing_is_no_success() -> None:
    found = silent(Exit("t", "finished", exit_code=0), [1, 2])
    assert (found.state, found.code, found.reason) == (
        "failed",
        "rank-silent",
        "ranks 1-2 never said how they ended: they were killed, or their nodes are gone",
    )
    assert silent(Exit("t", "timeout", reason="slow"), [1]).reason == "slow"


@pytest.mark.parametrize(
    ("stop", "state", "code"),
    [
        (Stop("SIGURG", cancelled=True), "cancelled", "cancelled"),
        (Stop("SIGTERM", batch_system="Slurm"), "timeout", "ended-from-outside"),
        (None, "failed", "rank-silent"),
    ],
)
def test_why_a_rank_was_not_waited_for_decides(stop: Stop | None, state: str, code: str) -> None:
    found = gathered({0: Exit("t", "finished"), 2: Exit("t", "finished", rank=2)}, 3, stop)
    assert (found.state, found.code, found.silent, found.wrappers) == (state, code, (1,), 3)
    assert found.stopped_by == (None if stop is None else stop.by)


def test_a_rank_that_was_ended_with_another_one_does_not_hide_why() -> None:
    ended = Exit("t", "cancelled", code="ended-with-rank", stopped_by="rank", reason="another had failed")
    failed = Exit("t", "failed", rank=1, exit_code=9, code="program-failed", reason="boom")
    assert gathered({0: ended, 1: failed}, 2).reason == "rank 1: boom"
    assert gathered({0: ended}, 2).code == "rank-silent"


def test_an_answer_of_an_earlier_attempt_is_none(tmp_path: Path) -> None:
    paths = TrialPaths(tmp_path)
    paths.hook.mkdir()
    write_json(paths.answer(1), to_json(Exit("t", "finished", attempt=1, rank=1)))
    write_json(paths.answer(2), to_json(Exit("t", "failed", attempt=2, rank=2)))
    assert {rank: found.state for rank, found in read_answers(paths, 2, [1, 2, 3]).items()} == {2: "failed"}


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([4, 3], "ranks 3-4"),
        ([1, 3], "ranks 1, 3"),
        (range(1, 512), "ranks 1-511"),
        ([3, 17, *range(19, 41), 50, *range(60, 530)], "ranks 3, 17, 19-40, 50 and 470 more"),
    ],
)
def test_ranks_are_named_in_few_words(ranks: Iterable[int], text: str) -> None:
    assert rank_list(ranks) == text
