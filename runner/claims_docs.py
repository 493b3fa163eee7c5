"""The claims of the tutorial jobs and their results, as small JSON documents and as the table in docs/jobs.

``python -m profrun.runner.claims_docs RUN ...`` keeps the claims of finished runs in tests/data/h200/jobs,
one file per job, and writes the table in docs/jobs/README.md anew; without a run it only writes the table.
The claims are judged anew from the traces of the run, as jobs/NAME.yaml states them now.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from profrun.contract.codec import from_json, to_json
from profrun.contract.units import counted
from profrun.errors import InputError
from profrun.jobs.load import load_job
from profrun.runner.finish import judged_again
from profrun.store.documents import provenance_beside
from profrun.store.files import read_json, write_json
from profrun.store.run_claims import CheckResult, ClaimResult, tally
from profrun.store.runs import Run, created
from profrun.store.state import read_state

if TYPE_CHECKING:
    from profrun.jobs.expectation import Expectation
    from profrun.jobs.model import Job

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests" / "data" / "h200" / "jobs"
PAGE = ROOT / "docs" / "jobs" / "README.md"
FORMAT = 1

_GENERATED = re.compile(r"<!-- claims -->\n.*?<!-- end -->", re.DOTALL)
_SOURCE = re.compile(r"(?P<title>.*?)[:,]?\s*(?P<url>https?://\S+)")


@dataclass(frozen=True)
class ClaimsDocument:
    """What a run says of the claims of its job; it names no path and no machine.

    Attributes:
        job: its name. command: what repeats the run.
        devices: product names of the GPUs, or of the CPU where there was no GPU.
        torch, profrun: versions; None where not known.
    """

    job: str
    command: str
    devices: tuple[str, ...]
    claims: tuple[ClaimResult, ...]
    torch: str | None = None
    profrun: str | None = None
    format: int = FORMAT


def claims_document(run: Run) -> ClaimsDocument:
    """The claims of a finished run.

    Raises:
        InputError: it is no run, or a file of it is damaged.
        UsageError: its job cannot be read.
    """
    state, given, resolved = read_state(run), load_job(run.job), load_job(run.resolved)
    traces = [record.trace for record in state.trials if record.trace is not None]
    machines = [found for trace in traces if (found := provenance_beside(trace)) is not None]
    names = [str(gpu["name"]) for one in machines for gpu in one.gpus.before if "name" in gpu]
    return ClaimsDocument(
        job=state.job,
        command=_command(given, resolved),
        devices=tuple(dict.fromkeys(names or [one.cpu for one in machines if one.cpu])),
        torch=next((one.torch.version for one in machines if one.torch is not None), None),
        profrun=created(run).get("profrun"),
        claims=tuple(_without_trials(one) for one in judged_again(run, _expectations(resolved))),
    )


def _expectations(job: Job) -> Sequence[Expectation]:
    """The claims of a job as jobs/ states them now; a job that is not in there brings its own."""
    now = ROOT / "jobs" / f"{job.name}.yaml"
    return load_job(now).expect if now.exists() else job.expect


def _without_trials(claim: ClaimResult) -> ClaimResult:
    """The claim without the names of the trials that could tell: they are long, and say nothing new."""
    return replace(claim, checks=tuple(replace(one, trials=()) for one in claim.checks))


def _command(given: Job, resolved: Job) -> str:
    """The command that makes the run: what it overrides of the job file."""
    words = [f"profrun submit jobs/{given.name}.yaml"]
    if given.collectors != resolved.collectors:
        words.append(f"--collectors {','.join(resolved.collectors)}")
    if given.repeats != resolved.repeats:
        words.append(_repeats(resolved.repeats))
    if list(given.variants) != list(resolved.variants):
        words.append(f"--only '{','.join(resolved.variants)}'")
    words += [
        f"--set {key}=..."
        for key in ("command", "schedule", "launch_blocking", "ranges", "env")
        if getattr(given, key) != getattr(resolved, key)
    ]
    return " ".join(words)


def _repeats(repeats: int | Mapping[str, int]) -> str:
    """The option that sets the number of trials: of all collectors, or of each."""
    if isinstance(repeats, int):
        return f"--repeats {repeats}"
    each = ", ".join(f"{collector}: {count}" for collector, count in repeats.items())
    return f"--set 'repeats={{{each}}}'"


def read_kept(folder: Path = KEPT) -> list[ClaimsDocument]:
    """The kept documents, by the name of the job.

    Raises:
        InputError: one is damaged.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        document = read_json(path)
        if document is None or document.get("format") != FORMAT:
            raise InputError(f"{path} is of another format", fix=f"keep a run again: {__name__} RUN")
        found.append(from_json(ClaimsDocument, document))
    return found


def table(documents: Sequence[ClaimsDocument], pages: Path = PAGE.parent) -> str:
    """All claims of all jobs as Markdown, and below on what each job ran.

    Args:
        pages: the folder of the pages of jobs; a job that has one is a link to it.
    """
    lines = [_total(documents), "", "| job | claim | source | state | measured |", "|---|---|---|---|---|"]
    for one in documents:
        lines += [f"| {_name(one, pages)} | {_row(claim)} |" for claim in one.claims]
    lines += ["", "| job | ran on | torch | profrun | command |", "|---|---|---|---|---|"]
    for one in documents:
        devices = ", ".join(one.devices) or "-"
        versions = f"{one.torch or '-'} | {one.profrun or '-'}"
        lines.append(f"| {_name(one, pages)} | {devices} | {versions} | `{one.command}` |")
    return "\n".join(lines)


def _total(documents: Sequence[ClaimsDocument]) -> str:
    """How many claims of how many jobs have which state."""
    claims = [claim for one in documents for claim in one.claims]
    counts = ", ".join(f"{count} {state}" for state, count in tally(claims).items() if count)
    of = f"{counted(len(claims), 'claim')} of {counted(len(documents), 'job')}"
    return f"{of}: {counts or 'nothing was run yet'}."


def _name(document: ClaimsDocument, pages: Path) -> str:
    page = f"{document.job}.md"
    return f"[{document.job}]({page})" if (pages / page).exists() else document.job


def _row(claim: ClaimResult) -> str:
    """The cells of a claim after that of its job."""
    told = "; ".join(dict.fromkeys(map(_told, claim.telling)))
    cells = (claim.claim, _source(claim.source), claim.state, f"{_about(claim)}{told}")
    return " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)


def _told(check: CheckResult) -> str:
    """What a check found; of names that must or must not occur it tells no names, so they come before."""
    return f"{check.expected}: {check.told}" if check.key in ("present", "absent") else check.told


def _about(claim: ClaimResult) -> str:
    return f"{claim.where}: " if len(claim.variants) == 1 or claim.phase else ""


def _source(source: str | None) -> str:
    """A source as a link where it has an address."""
    found = _SOURCE.fullmatch(source or "")
    if found is None:
        return source or ""
    return f"[{found['title'] or found['url']}]({found['url']})"


def renewed(page: str, documents: Sequence[ClaimsDocument]) -> str:
    """The page with its table written anew; what stands outside the markers stays."""
    return _GENERATED.sub(lambda _: f"<!-- claims -->\n{table(documents)}\n<!-- end -->", page)


def keep(runs: Iterable[Path], folder: Path = KEPT) -> None:
    """Keep the claims of runs, one file per job."""
    for path in runs:
        document = claims_document(Run(path))
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{document.job}.json", to_json(document, given=True))


if __name__ == "__main__":
    keep(Path(name) for name in sys.argv[1:])
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), read_kept()), encoding="utf-8")
