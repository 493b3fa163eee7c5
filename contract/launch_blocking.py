"""The variables that make kernel launches wait for their kernels, by vendor. The only list of them.

Sources: ``CUDA_LAUNCH_BLOCKING`` in NVIDIA's CUDA C++ Programming Guide, "CUDA Environment Variables";
``HIP_LAUNCH_BLOCKING`` and ``AMD_SERIALIZE_KERNEL`` in AMD's HIP documentation, page "Environment variables".
HIP does not read ``CUDA_LAUNCH_BLOCKING``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCKING_ENV: Mapping[str, Mapping[str, str]] = {
    "nvidia": {"CUDA_LAUNCH_BLOCKING": "1"},
    "amd": {"HIP_LAUNCH_BLOCKING": "1", "AMD_SERIALIZE_KERNEL": "3"},
}
"""Vendor -> the variables that a blocking trial sets. A trial that does not block must have none of them."""

BLOCKING_VARIABLES: tuple[str, ...] = tuple(name for block in BLOCKING_ENV.values() for name in block)
"""Names of all these variables, of both vendors."""
