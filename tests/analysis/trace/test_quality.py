"""Where a share of doubtful numbers becomes a warning."""

from __future__ import annotations

import pytest

from profrun.analysis.trace.quality import above


@pytest.mark.parametrize(("share", "severity"), [(0.0, "info"), (0.05, "info"), (0.051, "warning")])
def test_a_share_above_the_limit_is_a_warning(share: float, severity: str) -> None:
    assert above(share, 0.05) == severity
