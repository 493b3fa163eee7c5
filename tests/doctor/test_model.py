"""Where a collector can work."""

from __future__ import annotations

import pytest

from profrun.contract.finding import Finding, Passed
from profrun.doctor.model import CheckResult, Verdict


@pytest.mark.parametrize(
    ("local", "image", "backend", "works"),
    [
        (True, False, None, True),
        (True, False, "local", True),
        (True, False, "docker", False),
        (False, True, "docker", True),
        (False, True, None, True),
        (False, False, None, False),
    ],
)
def test_a_collector_works_on_a_backend(local: bool, image: bool, backend: str | None, works: bool) -> None:
    assert Verdict("nsys", local, {"i:1": image, "i:2": False}).works(backend) is works


def test_only_a_finding_has_a_severity() -> None:
    assert CheckResult("host", Passed("disk", "enough")).severity is None
    assert CheckResult("host", Finding("disk", "warning", "little")).severity == "warning"
