"""Start the wrapper: ``python3 run.py <trial folder>`` or ``run.py --preflight [collector] --json``."""

import os
import signal
import sys

if (
    signal.getsignal(signal.SIGINT) is signal.default_int_handler
):  # until the wrapper hears it, without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)
if sys.version_info < (3, 9):  # noqa: UP036 - images bring what they bring
    sys.exit("profrun's wrapper needs Python 3.9 or newer; this is " + sys.version.split()[0])

sys.dont_write_bytecode = True  # the bundle may be mounted read-only or shared
sys.path[0] = os.path.dirname(os.path.abspath(__file__))

from _profrun.in_job.wrapper import main  # type: ignore[import-not-found] # noqa: E402

sys.exit(main(sys.argv[1:]))
