"""The command line: the only place that joins the rooms, and the only one that exits."""


def main() -> None:
    """Entry point of the ``profrun`` command."""
    raise SystemExit(70)
