"""Starts the wrapper from one file: ``python3 wrap.pyz --out DIR -- COMMAND`` is ``profrun wrap``."""

import os
import sys

if sys.version_info < (3, 9):  # noqa: UP036 - images bring what they bring
    sys.exit("profrun's wrapper needs Python 3.9 or newer; this is " + sys.version.split()[0])

sys.dont_write_bytecode = True

from _profrun.in_job.wrap import main  # type: ignore[import-not-found] # noqa: E402

sys.exit(main(sys.argv[1:], os.path.basename(sys.argv[0])))
