"""A run on disk: the only memory of profrun. Everything about a run can be read back from its folder.

``files`` is the one place that writes, ``events`` the append-only log, ``lock`` keeps two drivers apart,
``runs`` makes and finds run folders, ``state`` folds log and files into what ``status`` shows.
"""
