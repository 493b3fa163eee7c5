"""What Slurm's own words mean."""

from __future__ import annotations

import pytest

from profrun.backends.slurm.commands import explained
from profrun.errors import ProfrunError, UnavailableError, UsageError


@pytest.mark.parametrize(
    ("stderr", "kind", "words"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
            UsageError,
            "Invalid partition name specified",
        ),
        (
            "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
            UnavailableError,
            "Requested node configuration is not available",
        ),
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
            UnavailableError,
            "the Slurm controller cannot be reached",
        ),
    ],
)
def test_refusals_carry_slurms_reason(stderr: str, kind: type[ProfrunError], words: str) -> None:
    error = explained("sbatch", stderr)
    assert isinstance(error, kind)
    assert words in str(error)
