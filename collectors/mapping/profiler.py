"""The mapping of kernels to the lines and modules that launch them: the declaration and its options."""

from __future__ import annotations

from dataclasses import dataclass

from ...contract.options import Many, Text, option
from ...contract.profilers import Profiler


@dataclass(frozen=True)
class Options:
    """Whose lines the kernels are mapped to."""

    packages: tuple[str, ...] | None = option(
        Many(
            Text("a package's name", r"[A-Za-z_][A-Za-z0-9_]*"),
            unique=True,
            example="[transformers, diffusers]",
        ),
        "Installed packages whose lines count as the program's own.",
        "none",
    )


PROFILER = Profiler(
    name="mapping",
    title="the mapping of kernels to lines",
    options=Options,
    exclusive=True,
    requires="torch",
    log_lines=r"(USDT|STAGE|INFO|VERBOSE):\d{4}-\d\d-\d\d ",  # of libkineto, for every recording
    module_depth=64,
    maps=True,
)
