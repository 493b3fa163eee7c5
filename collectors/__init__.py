"""One room a profiler: how its command wraps ours (``wrap.py``), what it leaves, how that is read.

``wrap.py`` modules and ``wrapping.py`` are stdlib-only, for Python 3.9: they are shipped into the job's
image and run there too (docs/architecture.md).
"""
