"""Questions asked of traces: summary, diagnosis, comparison, launch blocking. Pure: no files, no printing,
no plots.

Start at ``summary.summarize`` and ``diagnose.diagnose``; what each number means is in docs/numbers.md.
"""
