"""profrun from Python: what the commands do, as functions and values. ``import profrun`` offers all of it.

``plan`` and ``submit`` run a job, ``normalize`` and ``open`` give a trace, ``compare`` compares. Each takes
paths or values and returns a typed value; tables go to Arrow, pandas and polars.
"""
