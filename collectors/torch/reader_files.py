"""Pieces of a kineto file as small files, cut in a thread while others are read."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from profrun.collectors.torch.reader_cut import EventFile

Edit = Callable[[bytes], bytes]
BATCH = 6
"""Pieces read by one statement: enough to keep all threads busy, few enough to overlap with cutting."""


def batches(file: EventFile, work: Path, prefix: str, edit: Edit) -> Iterator[list[Path]]:
    """Write the pieces of a file as JSON arrays into ``work``, some at a time.

    Args:
        file: opened.
        work: folder for them; the caller removes them.
        prefix: begins their names.
        edit: changes the text of each piece.
    """
    batch: list[Path] = []
    size = 2  # the first ones soon: nothing is read while they are cut
    for count, piece in enumerate(file.pieces()):
        path = work / f"{prefix}-{count}.json"
        with path.open("wb") as target:
            target.writelines((b"[", edit(file.text(piece)), b"]"))
        batch.append(path)
        if len(batch) == size:
            yield batch
            batch, size = [], BATCH
    if batch:
        yield batch


def ahead(batches: Iterator[list[Path]]) -> Generator[list[Path], None, None]:
    """Make the next batch in a thread while this one is read; what the thread raises is raised here.

    Close it: the thread has ended when ``close`` returns.
    """
    ready: queue.Queue[list[Path] | BaseException | None] = queue.Queue(maxsize=1)
    stop = threading.Event()

    def offer(item: list[Path] | BaseException | None) -> None:
        while not stop.is_set():  # the reader may have ended: never wait for it without a limit
            try:
                ready.put(item, timeout=0.05)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for batch in batches:
                offer(batch)
                if stop.is_set():
                    return
            offer(None)
        except BaseException as error:
            offer(error)

    thread = threading.Thread(target=work, name="profrun-cut", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
