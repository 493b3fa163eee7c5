"""Damaged, odd and hostile inputs for everything that profrun reads: ``python -m tests.fuzz --help``.

``damage`` changes bytes, JSON, CSV and SQLite; ``families`` makes one case of each kind of input; ``child``
carries a case out in a process with limits and judges how it ended; ``suite`` counts and keeps what broke.
"""
