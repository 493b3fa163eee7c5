"""Answers to questions about a trace, as Python values that print as the command line prints them.

``Summary``, ``Diagnosis`` and ``CriticalPath`` hold what ``profrun.analysis`` found, with its fields.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from profrun.analysis.rules.finding import RuleFinding
from profrun.analysis.rules.step_cost import StepCost
from profrun.analysis.rules.step_use import StepUse
from profrun.analysis.trace.critical_path import CriticalPath as CriticalPathValue
from profrun.analysis.trace.line_table import PlaceTable
from profrun.analysis.trace.summary import Summary as SummaryValue
from profrun.api.table import Table, table_of_field
from profrun.contract.denominator import Denominator
from profrun.reports.diagnosis_text import diagnose_text
from profrun.reports.place_text import place_text
from profrun.reports.terminal import critical_path_text, summary_text
from profrun.reports.terminal_layout import Style

STYLE = Style(width=110)
"""Of printed results: as wide as a notebook's column."""


class Result(ABC):
    """A result that prints itself, and that gives its rows as tables."""

    @abstractmethod
    def __str__(self) -> str:
        """The result as the command line prints it."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def table(self, name: str) -> Table:
        """The rows that one of the fields holds, as a table; it has its columns even without rows.

        Args:
            name: of the field, for example ``kernels`` of a summary.

        Raises:
            UsageError: no field of that name holds rows; says which do.
        """
        return table_of_field(self, name)


@dataclass(frozen=True, repr=False)
class Summary(Result, SummaryValue):
    """Where the time went; its tables are quality, devices, steps, kernels, ops and more.

    Attributes:
        step_cost: what a step costs, with the step time without a profiler where that is known.
        step_use: FLOPs, MFU and HFU of a step; None without steps or without matrix ops of known shapes.
        energy_per_work: unit of work ('token', 'gflop') -> energy per unit, J, where both are known.
    """

    step_cost: StepCost
    step_use: StepUse | None
    energy_per_work: dict[str, float]

    def __str__(self) -> str:
        energy = self.energy_per_work
        return summary_text(self, STYLE, cost=self.step_cost, use=self.step_use, energy_per_work=energy)


@dataclass(frozen=True, repr=False)
class Places(Result, PlaceTable):
    """GPU time by line or by module of the program; its table is rows.

    Attributes:
        of: what its times are of.
    """

    of: Denominator

    def __str__(self) -> str:
        return place_text(self, self.of, STYLE)


class CriticalPath(Result, CriticalPathValue):
    """The chain of work that decides how long a window takes; its table is segments."""

    def __str__(self) -> str:
        return critical_path_text(self, STYLE)


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """What slows a program down; its table is findings.

    Attributes:
        findings: the gravest first, each with its evidence. ``for finding in diagnosis`` gives them, too.
    """

    findings: tuple[RuleFinding, ...]

    def __iter__(self) -> Iterator[RuleFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        return diagnose_text(self.findings, STYLE)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values: what ``profrun diagnose --json`` prints."""
        return {"findings": [finding.to_json() for finding in self.findings]}
