"""Which code is the user's: ``OwnCode`` is asked for the file of a code object.

Paths tell most of it (``contract.code_paths``). Here it is also known where this Python and profrun are, and
which installed packages count as the user's.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Collection

from ..contract.code_paths import is_generated, is_own, package_of


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
        return is_generated(file)

    def _is_own(self, file: str) -> bool:
        if self.is_generated(file):
            return True
        package = package_of(file)
        if package is not None:
            return package in self._packages
        return is_own(file) and not file.startswith(self._not_own)
