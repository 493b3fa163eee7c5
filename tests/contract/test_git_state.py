"""Which side's commit counts, and how it is said."""

from __future__ import annotations

from profrun.contract.git_state import GitState, chosen

INSIDE = GitState("a1", True, seen_by="job")
NO_GIT = GitState(why="git is not in this image")
SUBMITTED = GitState("b2", False, seen_by="submit")


def test_the_jobs_own_counts_first() -> None:
    assert chosen(INSIDE, SUBMITTED) == INSIDE
    assert chosen(NO_GIT, SUBMITTED) == GitState("b2", False, "git is not in this image", "submit")
    assert chosen(NO_GIT, GitState(why="git is not installed")) == NO_GIT


def test_the_words_say_the_side_where_it_is_not_the_job() -> None:
    assert INSIDE.text == "a1, with changes"
    assert GitState("a1", seen_by="job").text == "a1"
    assert NO_GIT.text == "git is not in this image"
    assert GitState().text is None
    told = chosen(NO_GIT, SUBMITTED).text
    assert told == "b2, clean (seen where the run was submitted; git is not in this image)"
