"""Makes reports of the raw streams (.qdstrm) that nsys left, with the QdstrmImporter beside it.

``nsys profile`` writes a stream, and then its importer makes a report of the stream. The stream stays when
nsys was ended early, when nsys does not find its importer, and when the importer failed. The importer of
2024.2.3 fails at random: 5 of 450 imports of one stream ended with "AnalysisFailed", three at a time on two
cores, and the next attempt worked. A failed import may leave a part of the report.

https://docs.nvidia.com/nsight-systems/UserGuide/index.html ("Import of QDSTRM files") describes the importer.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ...contract.wrapping import Import

_IMPORTER = "QdstrmImporter"
_DEBIAN = Path("/usr/lib/nsight-systems")


def imports(folder: Path, tool: str) -> tuple[Import, ...]:
    """The commands that make a report of each stream in a folder; none where there is no importer.

    nsys deletes a stream when its report is whole, so a report beside a stream is a part of one.

    Args:
        folder: folder of a rank's files.
        tool: path of nsys.
    """
    streams = sorted(folder.glob("*.qdstrm"))
    importer = find_importer(tool) if streams else None
    if importer is None:
        return ()
    return tuple(import_of(importer, stream, stream.with_suffix(".nsys-rep")) for stream in streams)


def import_of(importer: Path, stream: Path, report: Path) -> Import:
    """The command that makes a report of a stream.

    Args:
        importer: path of QdstrmImporter; the folders of its libraries follow from it.
        stream: the .qdstrm file.
        report: where the report shall be, a .nsys-rep file.
    """
    made = report.with_suffix(".part.nsys-rep")  # the importer refuses to replace a file
    argv = (str(importer), "-i", str(stream), "-o", str(made))
    home = importer.parent
    return Import(argv, stream, made, report, (str(home), str(home.parent / "lib")))


def find_importer(tool: str) -> Path | None:
    """QdstrmImporter on the PATH, in the tree of this nsys, or where Debian puts it; None: it is nowhere.

    Args:
        tool: path of nsys; a link is followed.
    """
    on_path = shutil.which(_IMPORTER)
    if on_path:
        return Path(on_path).resolve()
    home = Path(tool).resolve().parent
    for place in (home, home.parent, home.parent.parent, _DEBIAN):
        candidate = place / "host-linux-x64" / _IMPORTER
        if os.access(candidate, os.X_OK):
            return candidate
    return None
