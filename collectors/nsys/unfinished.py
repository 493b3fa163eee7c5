"""Makes reports of the raw streams that nsys left unfinished (.qdstrm), with the QdstrmImporter beside it.

``nsys profile`` writes a stream and then has the importer make a report of it. A stream stays when nsys was
ended early, when it does not find its importer, and when the importer failed. The importer of 2024.2.3 fails
now and then on a stream that it imports the next time (5 of 450 imports of one stream, three at a time on two
cores, with "AnalysisFailed"), so a stream is worth more than one attempt.

https://docs.nvidia.com/nsight-systems/UserGuide/index.html ("Import of QDSTRM files") describes the importer.
"""

from __future__ import annotations

import os
import shutil

from ...contract.wrapping import Import

IMPORTER = "QdstrmImporter"
_DEBIAN = "/usr/lib/nsight-systems"
_REPORT, _STREAM = ".nsys-rep", ".qdstrm"


def imports(folder: str, tool: str) -> tuple[Import, ...]:
    """How a report is made of each stream in a folder that has no report beside it.

    Args:
        folder: folder of a rank's files.
        tool: path of nsys.
    """
    names = set(os.listdir(folder))
    stems = sorted(name[: -len(_STREAM)] for name in names if name.endswith(_STREAM))
    left = [os.path.join(folder, stem) for stem in stems if stem + _REPORT not in names]
    importer = find_importer(tool) if left else None
    return () if importer is None else tuple(import_of(importer, p + _STREAM, p + _REPORT) for p in left)


def import_of(importer: str, stream: str, report: str) -> Import:
    """The command that makes a report of a stream, with the folders of the importer's libraries."""
    home = os.path.dirname(importer)
    libraries = (home, os.path.join(os.path.dirname(home), "lib"))
    return Import((importer, "-i", stream, "-o", report), stream, report, libraries)


def find_importer(tool: str) -> str | None:
    """Path of QdstrmImporter: on the PATH, in the tree of this nsys, or where Debian puts it; None: nowhere.

    Args:
        tool: path of nsys; a link is followed.
    """
    on_path = shutil.which(IMPORTER)
    if on_path:
        return os.path.realpath(on_path)
    places = [os.path.realpath(tool)]
    for _ in range(3):
        places.append(os.path.dirname(places[-1]))
    for place in (*places[1:], _DEBIAN):
        candidate = os.path.join(place, "host-linux-x64", IMPORTER)
        if os.access(candidate, os.X_OK):
            return candidate
    return None
