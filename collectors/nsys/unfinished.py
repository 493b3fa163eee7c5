"""Makes reports of the raw streams that nsys left unfinished (.qdstrm), with the QdstrmImporter beside it.

``nsys profile`` writes a stream and then has the importer make a report of it. A stream stays when nsys was
ended early, when it does not find its importer, and when the importer failed. The importer of 2024.2.3 fails
now and then on a stream that it imports the next time (5 of 450 imports of one stream, three at a time on two
cores, with "AnalysisFailed"), so a stream is worth more than one attempt. A failed import may leave a part of
the report.

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
    """How a report is made of each stream in a folder.

    nsys deletes a stream when its report is whole, so a report beside a stream is a part of one.

    Args:
        folder: folder of a rank's files.
        tool: path of nsys.
    """
    left = sorted(name[: -len(_STREAM)] for name in os.listdir(folder) if name.endswith(_STREAM))
    importer = find_importer(tool) if left else None
    if importer is None:
        return ()
    stems = [os.path.join(folder, stem) for stem in left]
    return tuple(import_of(importer, stem + _STREAM, stem + _REPORT) for stem in stems)


def import_of(importer: str, stream: str, report: str) -> Import:
    """The command that makes a report of a stream, with the folders of the importer's libraries."""
    home = os.path.dirname(importer)
    libraries = (home, os.path.join(os.path.dirname(home), "lib"))
    made = report[: -len(_REPORT)] + ".part" + _REPORT  # the importer refuses to replace a file
    return Import((importer, "-i", stream, "-o", made), stream, made, report, libraries)


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
