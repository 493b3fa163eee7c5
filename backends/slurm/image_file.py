"""An image as one file in the run's folder, made once for all of its trials. Pure.

Without it pyxis and apptainer import a reference again for each task: 200 trials of 20 GB, and 8 ranks at the
same time. Whoever comes first makes the file, under a lock; a mark says that it is whole.
"""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

VARIABLE = "$image"
"""The shell variable that holds the file, or the reference where none could be made."""

_MAKE = {
    "pyxis": "enroot import --output {part} {source}",
    "apptainer": "apptainer pull --force {part} {source}",
}
_SUFFIX = {"pyxis": "sqsh", "apptainer": "sif"}

_LINES = """
# The image as one file, made once for all trials of the run. A mark says that it is whole.
image={file}
if [ ! -e "$image.done" ]; then
    (
        flock 9
        if [ ! -e "$image.done" ]; then
            rm -f {part}
            {make} </dev/null && mv {part} "$image" && touch "$image.done"
        fi
    ) >>{log} 2>&1 9>>"$image.lock"
fi
if [ ! -e "$image.done" ]; then
    echo "profrun: the image could not be made into a file: $(tail -n 1 {log}); each task imports it" >&2
    image={reference}
fi"""


@dataclass(frozen=True)
class ImageFile:
    """How a reference becomes a file.

    Attributes:
        lines: shell lines before the first step; they set ``VARIABLE``.
        remove: shell line after the last one.
    """

    lines: str
    remove: str


def image_file(how: Literal["pyxis", "apptainer"], reference: str, run: Path) -> ImageFile | None:
    """How the file of an image is made; None where the image is a file already.

    Args:
        reference: as the runtime takes it: ``REGISTRY#IMAGE:TAG`` for pyxis, ``docker://...`` for apptainer.
        run: the run's folder, which all nodes see.
    """
    if reference.startswith("/") or reference.endswith((".sqsh", ".sif")):
        return None
    digest = hashlib.sha256(reference.encode()).hexdigest()[:8]
    file = run / f"slurm/image-{digest}.{_SUFFIX[how]}"
    part = shlex.quote(str(file.with_name(f"part-{file.name}")))
    source = reference if "://" in reference else f"docker://{reference}"
    lines = _LINES.format(
        file=shlex.quote(str(file)),
        part=part,
        make=_MAKE[how].format(part=part, source=shlex.quote(source)),
        log=shlex.quote(f"{file}.log"),
        reference=shlex.quote(reference),
    )
    return ImageFile(lines.strip("\n"), f"rm -f {shlex.quote(str(file))} {shlex.quote(f'{file}.done')}")
