"""The claims of a job and what the run says of them, as text for a terminal: ``claim_parts``."""

from __future__ import annotations

from collections.abc import Sequence

from profrun.contract.units import counted
from profrun.reports.terminal_layout import Part, Prose, Toned
from profrun.reports.tones import TONES
from profrun.store.run_claims import CheckResult, ClaimResult, tally

_WIDEST = len("not checked")


def claim_parts(claims: Sequence[ClaimResult]) -> list[Part]:
    """How many claims held, then each claim with its state and what was measured, in the order of the job."""
    head, _, counts = tally_text(claims).partition(": ")
    parts: list[Part] = [Prose(counts, label=head)]
    for claim in claims:
        state = Toned(claim.state, TONES[claim.state])
        hang = _WIDEST + 2
        parts.append(Prose(f"  {claim.state:{_WIDEST}}  {claim.claim}", toned=(state,), hang=hang))
        indent = " " * (hang + 2)
        parts += [Prose(indent + line, hang=2) for line in details(claim)]
    return parts


def tally_text(claims: Sequence[ClaimResult]) -> str:
    """'9 claims: 6 held, 1 refuted, 2 not checked'; what did not occur is left out."""
    counts = ", ".join(f"{count} {state}" for state, count in tally(claims).items() if count)
    return f"{counted(len(claims), 'claim')}: {counts}"


def details(claim: ClaimResult) -> list[str]:
    """What the checks that give the claim its state found, or why they could not be checked; one per line."""
    lines = [_line(one) for one in claim.telling]
    fixes = [f"to check it: {one.fix}" for one in claim.telling if one.fix]
    return list(dict.fromkeys((*lines, *fixes)))


def _line(check: CheckResult) -> str:
    """What was found, with the first trial that refutes the claim."""
    names = check.refuted_on
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{check.told} ({names[0]}{more})" if names else check.told
