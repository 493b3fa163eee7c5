"""What the wrapper tells the reader of its log."""

import sys


def complain(text: str) -> None:
    """Print a line about profrun to stderr. Where even that cannot be written, nobody can be told."""
    try:
        print(f"profrun: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass
