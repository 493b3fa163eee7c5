"""The docs pages of the rules, made from the rules and from what was measured:
``python -m profrun.analysis.rules.docs docs tests/data/improve``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from profrun.analysis.rules.catalogue import all_rules
from profrun.analysis.rules.causes import LINKS
from profrun.analysis.rules.measured import MeasuredRow
from profrun.analysis.rules.measured_docs import measured_page, precision_section, read_measured
from profrun.analysis.rules.replay import REPLAY_ERROR
from profrun.analysis.rules.rule import Rule
from profrun.analysis.rules.step_cost import CRITICAL_SHARE, SLOWDOWN, WARNING_SHARE
from profrun.contract.changes import parse

_HEAD = (
    "<!-- made by `python -m profrun.analysis.rules.docs docs tests/data/improve`; "
    "edit the rule, not this page -->\n"
)


def rule_page(rule: Rule) -> str:
    """One rule's page, Markdown."""
    relies = ", ".join(f"`{name}`" for name in rule.relies_on)
    module = rule.find.__module__.removeprefix("profrun.").replace(".", "/")
    text = f"{_HEAD}# {rule.id}: {rule.title}\n\n"
    text += f"Severity: **{rule.severity}**. Code: `{module}.py`, `{rule.find.__name__}`.\n\n"
    text += f"## What it means\n\n{rule.meaning}\n\n## When it fires\n\n{rule.threshold}\n\n"
    if rule.bound:
        text += (
            f"## What could be gained at most\n\n{rule.bound} The severity follows from its share of the "
            "step ([limits](../rules.md#what-could-be-gained)).\n\n"
        )
    text += f"## What to do\n\n{rule.advice}\n"
    text += _experiments(rule)
    text += _links(rule)
    if relies:
        text += (
            f"\n## What it rests on\n\n{relies}. The rule does not run when one of them is withheld for the "
            "quality of the recording. When one is only marked, the finding carries the code of the quality "
            "finding ([numbers](../numbers.md#data-quality)).\n"
        )
    return text


def _experiments(rule: Rule) -> str:
    """Which changes ``profrun improve`` tries for a finding of this rule."""
    if not rule.experiments:
        return ""
    lines = "".join(f"- `{text}`: {parse(text).what}\n" for text in rule.experiments)
    return f"\n## What `profrun improve` tries\n\n{lines}\nSee [changes](../changes.md).\n"


def _tried() -> str:
    """Which changes are tried for findings of which rules, for the page of all rules."""
    asked: dict[str, list[str]] = {}
    for rule in all_rules():
        for text in rule.experiments:
            asked.setdefault(text, []).append(f"[{rule.id}](rules/{rule.id}.md)")
    rows = "".join(f"| `{text}` | {', '.join(rules)} |\n" for text, rules in sorted(asked.items()))
    return f"{_TRIED}\n| change | for findings of |\n|---|---|\n{rows}\n"


def _links(rule: Rule) -> str:
    """Which findings explain those of this rule, and when."""
    mine = [link for link in LINKS if link.effect == rule.id]
    if not mine:
        return ""
    lines = "".join(f"- [{link.cause}]({link.cause}.md): {link.condition}\n" for link in mine)
    return f"\n## What explains it\n\nIt goes below a finding of one of these rules, when:\n\n{lines}"


def index_page(measured: Sequence[MeasuredRow]) -> str:
    """The page that lists all rules.

    Args:
        measured: what experiments gave (``measured_docs``).
    """
    rules = all_rules()
    text = f"{_HEAD}# What `profrun diagnose` looks for\n\n"
    text += (
        f"{len(rules)} rules. Each is a small function with a threshold that is stated here, evidence "
        "(numbers with their denominators, slices to open) and advice. Each has a test on a trace that has "
        "the problem and on one that has not (`tests/analysis/rules/test_catalogue.py`). A diagnosis has at "
        "most one finding of a rule; several kernels, ops or ranks are its rows. How far the findings can "
        "be trusted was judged by hand on real recordings: [rules-judged.md](rules-judged.md).\n\n"
    )
    text += _GAIN.format(
        critical=f"{CRITICAL_SHARE * 100:.0f} %",
        warning=f"{WARNING_SHARE * 100:.0f} %",
        slowdown=f"{SLOWDOWN:g}",
        replay_error=f"{REPLAY_ERROR * 100:.0f} %",
    )
    text += _CAUSES + "\n| finding | goes below | when |\n|---|---|---|\n"
    for link in LINKS:
        text += f"| {link.effect} | {link.cause} | {link.condition} |\n"
    text += "\n" + _tried() + precision_section(measured)
    text += "## All rules\n\n| rule | severity | what | fires when |\n|---|---|---|---|\n"
    for rule in rules:
        text += f"| [{rule.id}](rules/{rule.id}.md) | {rule.severity} | {rule.title} | {rule.threshold} |\n"
    return text


_GAIN = """## What could be gained

A finding about the program states the most that could be gained: "at most 3.1 ms of 39 ms per step". Each
rule's page says how its bound is computed. The share of the step decides the severity: from {critical} on
the finding is `critical`, from {warning} on a `warning`, below it is for information (`info`). Findings are
sorted by severity, then by gain. Rules that only describe, and those about the recording itself, state no
gain; their severity is fixed.

*Which step time.* Where the trace is a trial's, and its run has finished trials of the same variant without
a profiler, gains and the GPU's busy share are of their step time (the median over trials of the median of
the measured steps). Else they are of the recorded step, and the profiler's cost is in it: a gain of host
time is then at most a `warning`, and the sentence says so. Recordings without steps are judged as a whole;
gains of host time are then for information, because set-up is part of them.

*Which steps.* A first step that takes over 1.5 times the median of the others, or at whose begin nothing is
recorded, is left out: the profiler's own start makes it longer (rules `cold-start` and `dead-window`).

*Host time.* A step takes at least the time of its GPU work. So no gain of host time is larger than the part
of the step in which the GPU does not work.

*What is not in a gain.* Other work can get faster, too: caches are not emptied, a core no longer sleeps in
each step. In one run on a CPU the fetches took 51.7 % of a step, and worker processes saved 55.0 to 60.5 % of
it. [rules-measured.md](rules-measured.md) has what findings promised beside what was measured.

*GPU time.* The steps are replayed: the host runs as in the recording, without its waits; a piece of GPU work
starts when its launch has arrived and the work before it has ended; waits end when the work that they wait
for has ended. Then the work that the rule is about is shortened by the most that it could be, and the gain is
the time by which the replay gets shorter. Work that the step does not wait for gains nothing. In the replay
the host is made faster, until the steps take as long as without a profiler, and once more until they take
{replay_error} less than in the fastest trial without one, because a replay can be wrong by that much; the
larger gain is told. Where that time is not known, the host is {slowdown} times faster, which is more than a
profiler was seen to cost. Where a replay of the unchanged
steps differs from the recording by over 15 %, or there are no steps, the gain is the whole time by which the
work is shortened.

"""
_CAUSES = """## Findings by cause

A finding that another one explains goes below it: `explained_by` has the rule's id, `because` the numbers.
It is for information then, because the same time is counted for the cause already; only `overhead-bound`
can still have a gain of its own. Each link has a condition on the trace. The gain of the cause must be at
least half of the gain of the finding below it, and its severity must be at least as high.
"""


_TRIED = """## What `profrun improve` tries

[`profrun improve`](improve.md) tries the changes that a finding asks for. [changes.md](changes.md) says what
each of them does, what may break, and what makes it permanent.
"""


def write(docs: Path, recorded: Path) -> None:
    """Write all pages under a docs folder and remove pages of rules that are gone.

    Args:
        recorded: folder with documents of ``profrun improve`` (``measured_docs.read_measured``).
    """
    measured = read_measured(recorded)
    folder = docs / "rules"
    folder.mkdir(parents=True, exist_ok=True)
    (docs / "rules.md").write_text(index_page(measured), encoding="utf-8")
    (docs / "rules-measured.md").write_text(measured_page(measured), encoding="utf-8")
    names = {rule.id for rule in all_rules()}
    for rule in all_rules():
        (folder / f"{rule.id}.md").write_text(rule_page(rule), encoding="utf-8")
    for page in folder.glob("*.md"):
        if page.stem not in names:
            page.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
