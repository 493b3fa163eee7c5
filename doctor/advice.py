"""The doctor's short answer: for each profiler where it works, else the one reason why not; and what to mend.

Pure: everything is worked out from the checks and verdicts of ``profrun.doctor.checks``.
"""

from __future__ import annotations

from dataclasses import dataclass

from profrun.contract.finding import Finding, Passed, gravest_first
from profrun.contract.profilers import Profiler, profiler, tools
from profrun.doctor.checks import check_machine, obstacles, verdicts
from profrun.doctor.model import Machine

VENDORS = {"nvidia": "NVIDIA", "amd": "AMD"}


@dataclass(frozen=True)
class Answer:
    """Where one profiler works.

    Attributes:
        profiler: its name; ``title``: what it is.
        local: it works on this machine itself.
        images: images in which it works.
        obstacle: why it works nowhere; None where it works.
    """

    profiler: str
    title: str
    local: bool
    images: tuple[str, ...]
    obstacle: Finding | None


@dataclass(frozen=True)
class Advice:
    """The whole short answer.

    Attributes:
        machine: the GPUs and the container engine, each in a few words.
        answers: one for each profiler.
        mend: what stands in the way of something, with how to mend it; without what concerns only profilers
            that work, or that have no GPU here to profile.
    """

    machine: tuple[str, ...]
    answers: tuple[Answer, ...]
    mend: tuple[Finding, ...]


def advise(machine: Machine) -> Advice:
    """Work out the short answer."""
    answers = tuple(_answers(machine))
    checks = [found.result for found in check_machine(machine)]
    engine = machine.found.engine
    about = (
        next(check.what for check in checks if check.code == "gpu"),
        f"{engine.name} {engine.version}" if engine else "no container engine",
    )
    obstacles = [
        Finding(answer.profiler, "critical", answer.obstacle.what, answer.obstacle.why, answer.obstacle.fix)
        for answer in answers
        if answer.obstacle is not None and answer.obstacle.fix
    ]
    others = [
        check
        for check in checks
        if not isinstance(check, Passed) and check.code not in ("gpu", *tools()) and check.fix
    ]
    return Advice(about, answers, (*obstacles, *gravest_first(others)))


def _answers(machine: Machine) -> list[Answer]:
    found = []
    for verdict in verdicts(machine):
        one = profiler(verdict.collector)
        images = tuple(name for name, works in verdict.images.items() if works)
        works = verdict.local or bool(images)
        obstacle = None if works else _obstacle(machine, one)
        found.append(Answer(one.name, one.title, verdict.local, images, obstacle))
    return found


def _obstacle(machine: Machine, one: Profiler) -> Finding:
    """The one reason why a profiler works neither here nor in an image."""
    vendors = [VENDORS[vendor] for vendor in one.vendors if vendor in VENDORS]
    if machine.host.vendor not in one.vendors:
        return Finding("no-gpu", "critical", f"it needs an {' or '.join(vendors)} GPU")
    if one.requires and one.requires not in machine.packages:
        what = f"no {one.requires} in the Python that runs profrun"
        return Finding("package-missing", "critical", what, fix=f"pip install {one.requires}")
    return obstacles(machine.preflight, one)[0]
