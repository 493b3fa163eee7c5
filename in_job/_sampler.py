"""Start the sampler: ``python3 sampler.py <trial folder> --rate 10 ...``; the wrapper does it."""

import os
import sys

sys.dont_write_bytecode = True  # the bundle may be mounted read-only or shared
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from _profrun.in_job.sampler import main  # type: ignore[import-not-found] # noqa: E402

main(sys.argv[1:])
