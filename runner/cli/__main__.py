"""``python -m profrun.runner.cli``."""

from profrun.runner.cli import main

main()
