"""Kinds of values of a job spec that are about changes of the program: ``changes``, ``sequential``."""

from __future__ import annotations

from dataclasses import dataclass

from profrun.contract.changes import CHANGES, FORM, parse
from profrun.contract.options import REQUIRED, option
from profrun.contract.results import Results
from profrun.contract.rounds import FIRST
from profrun.jobs.kinds import BAD, Bad, Json, Kind, Text
from profrun.jobs.nodes import Node
from profrun.jobs.number_kinds import Whole, seconds
from profrun.jobs.problems import Problems, suggest
from profrun.jobs.spec_kinds import Share
from profrun.jobs.tables import ListOf, table_of


@dataclass(frozen=True)
class ChangeName(Kind[str]):
    """A change of ``contract.changes``, with its value; read with the value spelled out."""

    def read(self, node: Node, at: str, problems: Problems) -> str | Bad:
        """See ``Kind.read``."""
        text = Text("the name of a change, such as loader-workers=4").read(node, at, problems)
        if text is BAD:
            return BAD
        try:
            return parse(text).text
        except ValueError as error:
            name = text.partition("=")[0]
            known = name in CHANGES
            fix = f"write {parse(name).text}" if known else suggest(name, CHANGES, "changes")
            problems.bad(node.where, f"{at}: {error}", fix)
            return BAD

    def schema(self) -> Json:
        """See ``Kind.schema``."""
        return {"type": "string", "pattern": f"^(?:{FORM})$"}

    def words(self) -> str:
        """See ``Kind.words``."""
        return "a change"


CHANGE_LIST = ListOf(ChangeName(), 1, unique=True, example="[loader-workers=4, tf32]")
RESULTS = table_of(Results, "keys of 'results'")


@dataclass(frozen=True)
class Sequential:
    """Trials are run in rounds, and each variant only until it is decided.

    Attributes:
        base: the variant that all others are compared with.
        worth: the smallest gain that is worth finding, as a part of the step time.
        first: rounds before the first decision.
        budget: seconds after which no new round begins; None: no limit.
        narrow: what is proven goes on until half of its interval is at most this part of the gain; None: it
            stops when it is proven.
    """

    base: str = option(
        Text("the name of a variant"), "The variant that others are compared with.", value=REQUIRED
    )
    worth: float = option(
        Share(),
        "Smallest gain that matters: a variant that cannot gain as much is not run any longer.",
        "2%",
        value=0.02,
    )
    first: int = option(
        Whole(2, 1000),
        "Rounds before the first decision; `repeats` of `none` is at least as much.",
        value=FIRST,
    )
    budget: float | None = option(
        seconds(1), "No new round begins this long after the first trial.", "no limit", null=True
    )
    narrow: float | None = option(
        Share(),
        "What is proven goes on until half of its interval is at most this part of the gain.",
        "none: it stops when it is proven",
        null=True,
    )


SEQUENTIAL = table_of(Sequential, "keys of 'sequential'")
