"""Which code is the user's: ``OwnCode`` is asked for the file of a code object.

The user's code is neither Python's own nor an installed package's nor profrun's. Code that torch.compile has
generated counts too: what it launches is told apart by its lines.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Collection

_PACKAGES = ("site-packages", "dist-packages")
_GENERATED = "torchinductor_"
"""Beginning of the name of the folder in which torch.compile keeps its code, where nobody has moved it."""


class OwnCode:
    """Tells the user's files from all others.

    Args:
        packages: names of installed packages that count as the user's code.
        ours: profrun's own folder in the job.
    """

    def __init__(self, packages: Collection[str] = (), ours: str = "") -> None:
        paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
        self._not_own = tuple(path.rstrip(os.sep) + os.sep for path in (*paths, ours) if path)
        self._packages = frozenset(packages)
        self._known: dict[str, bool] = {}

    def __call__(self, file: str) -> bool:
        """Whether this file is the user's."""
        found = self._known.get(file)
        if found is None:
            found = self._known[file] = self._is_own(file)
        return found

    def is_generated(self, file: str) -> bool:
        """Whether torch.compile has made this file."""
        folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        if folder and file.startswith(folder.rstrip(os.sep) + os.sep):
            return True
        return any(part.startswith(_GENERATED) for part in file.split(os.sep))

    def _is_own(self, file: str) -> bool:
        if file.startswith("<"):  # made of a text, or frozen
            return False
        if self.is_generated(file):
            return True
        parts = file.split(os.sep)
        for place, part in enumerate(parts[:-1]):
            if part in _PACKAGES:
                return parts[place + 1].partition(".")[0] in self._packages
        return not file.startswith(self._not_own)
