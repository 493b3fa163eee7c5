"""Slurm's commands that answer from a table."""

from __future__ import annotations

from typing import Any

from profrun.backends.slurm.commands import Slurm
from profrun.errors import ProfrunError

SQUEUE = """7_0|RUNNING|None
7_1|PENDING|Priority
7_2|PENDING|DependencyNeverSatisfied
7_3|COMPLETED|None
"""


class Scripted(Slurm):
    """Answers from a table instead of starting anything."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[list[str]] = []
        self.texts: list[str | None] = []

    def run(self, argv: Any, *, text: Any = None, env: Any = None) -> str:
        self.asked.append(list(argv))
        self.texts.append(text)
        answer = self.answers.get(argv[0], "")
        if isinstance(answer, ProfrunError):
            raise answer
        return str(answer)
