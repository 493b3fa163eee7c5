"""One folder per profiler: its declaration, how it wraps a command, and how its files are read.

docs/collectors.md lists the modules of such a folder. ``normalize`` reads the files of any profiler into a
trace; ``reading`` is what a reader is; ``sniff``, ``sqlite`` and ``json_stream`` help readers.
"""
