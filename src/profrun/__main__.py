"""``python -m profrun`` is the command ``profrun``."""

from profrun.cli import main

if __name__ == "__main__":
    main()
