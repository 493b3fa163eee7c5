"""What the doctor says of Nsight Systems in an image."""

from __future__ import annotations

from collections.abc import Mapping

from profrun.collectors.nsys.wrap import nvtx_recordable
from profrun.contract.finding import Finding
from profrun.contract.machine import version_in


def check_image(versions: Mapping[str, str]) -> Finding | None:
    """Ranges of Python's nvtx package that this nsys would lose; None when it loses none.

    Args:
        versions: of the profilers and of the Python packages that are in the image.
    """
    nvtx, nsys = versions.get("nvtx"), versions.get("nsys")
    known = version_in(nvtx or ""), version_in(nsys or "")
    if known[0] is None or known[1] is None or nvtx_recordable(known[0], known[1]) is not False:
        return None
    return Finding(
        "nvtx",
        "warning",
        f"nvtx {nvtx} with nsys {nsys}",
        "ranges that the workload itself makes with this package vanish in nsys; profrun's own do not",
        "pip install nvtx==0.2.11 in the image, or a newer nsys",
    )
