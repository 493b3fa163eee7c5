"""``python -m profrun.cli``."""

from profrun.cli import main

main()
