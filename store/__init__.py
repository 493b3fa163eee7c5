"""A run on disk. Everything about a run can be read back from its folder.

``files`` writes and reads small files, ``events`` is the append-only log, ``lock`` keeps two drivers apart,
``documents`` reads what a trial wrote, ``runs`` makes and finds run folders, ``state`` folds log and
documents into the state of a run, ``run_result`` is what a run found.
"""
