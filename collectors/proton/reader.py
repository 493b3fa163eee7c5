"""Readers of what Proton writes, the Chrome trace and the tree, of one or several ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence

from profrun.collectors.json_stream import JsonStream, Malformed, open_bytes
from profrun.collectors.proton import chrome, tree
from profrun.collectors.proton.facts import Device, facts, vendor_by_names
from profrun.collectors.proton.recording import Recording
from profrun.collectors.reading import Progress, Source
from profrun.collectors.unpack import DAMAGED
from profrun.errors import InputError
from profrun.traces.writer import TraceWriter

_FIX = "copy it again after the program has ended, or record again"
_IN_CYCLES = b'{"displayTimeUnit":"ns"'


class ChromeReader:
    """Reads Chrome traces (``data="trace"``). See ``collectors.reading.Reader``; each file is one process."""

    name = "proton-trace"

    def accepts(self, source: Source) -> bool:
        """A Chrome trace whose events have Proton's call stacks."""
        return source.head.startswith(b'{"displayTimeUnit":"') and b'"call_stack":["ROOT"' in source.head

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """See ``collectors.reading.Reader``.

        Raises:
            InputError: damaged, or times inside kernels instead of kernels.
        """
        recording, left = Recording(), chrome.Left()
        ranges = guessed = 0
        for number, source in enumerate(sources):
            streams = _streams(source, left)
            one = facts(source.path, number, len(sources))
            recording.facts.append(one)
            ordinal, device = one.device or (0, None)
            if device is None:
                guessed += 1
                device = Device(vendor_by_names([k.name for kernels in streams.values() for k in kernels]))
            recording.devices[(number, ordinal)] = device
            ranges += chrome.take_up(recording, number, ordinal, streams, left)
            progress(number + 1, len(sources))
        _finish(recording, writer, self.name)
        writer.issue(
            "scope_times_from_kernels",
            ranges,
            "Proton gives scopes and call stacks no times: each is a range on the stream, from the first to "
            "the last of the kernels in a row that were launched under it",
        )
        writer.issue(
            "step_of_thread_repaired",
            left.old_step,
            "kernels of other threads than the main one carried a step that was over, because Proton keeps a "
            "thread's scopes as they were at its first kernel: they are put into the step of the kernel "
            "before them on their stream; scopes below the step may be old too",
        )
        writer.issue(
            "graph_step_unknown",
            left.replayed,
            "kernels of CUDA graph replays are in no step: Proton was seen to put all of them into the step "
            "of the last replay",
        )
        writer.issue(
            "device_guessed",
            guessed,
            "nothing says which GPU it was: the vendor is guessed from the names of the kernels",
            sources[0].path.name,
        )
        writer.issue("truncated", left.truncated, "files end early; their whole kernels were kept")
        writer.issue(
            "kernel_without_times",
            left.broken,
            "kernels without a start, duration or stream are left out",
        )
        writer.issue("event_unknown", left.unknown, "events that are no kernels are left out", left.example)


class TreeReader:
    """Reads trees (``data="tree"``). See ``collectors.reading.Reader``; each file is one process."""

    name = "proton-tree"

    def accepts(self, source: Source) -> bool:
        """A list of nodes as Hatchet reads them."""
        start = b"".join(source.head.split())
        return start.startswith(b'[{"children":[') and b'"frame":{"name":"' in start

    def read(self, sources: Sequence[Source], writer: TraceWriter, progress: Progress) -> None:
        """See ``collectors.reading.Reader``.

        Raises:
            InputError: damaged, without a GPU, or with more calls than a trace can show.
        """
        recording, taken = Recording(), tree.Taken()
        for number, source in enumerate(sources):
            recording.facts.append(facts(source.path, number, len(sources)))
            try:
                with open_bytes(source) as file:
                    tree.take_up(recording, number, json.load(file), taken)
            except (*DAMAGED, RecursionError) as error:
                raise InputError(
                    f"{source.path} is no whole tree of Proton", why=str(error) or None, fix=_FIX
                ) from error
            progress(number + 1, len(sources))
        _finish(recording, writer, self.name)
        writer.meta["replayed"] = True  # there is no timeline
        writer.issue(
            "no_launch_order",
            taken.calls,
            "a tree has no times of single kernels: they lie end to end, in the order of the call paths",
        )
        writer.issue(
            "durations_averaged",
            taken.averaged,
            "a tree has sums over the calls of a kernel in a call path: each call has an equal share of the "
            "time and of the metrics, so that only counts, sums and means are measured",
        )
        writer.issue("no_duration", taken.untimed, "kernels without a time in the tree have 0 ns")
        writer.issue(
            "metric_not_number",
            len(taken.words),
            "metrics that are no numbers have no row in metrics",
            taken.words[0] if taken.words else None,
        )


READERS = (ChromeReader(), TreeReader())


def _streams(source: Source, left: chrome.Left) -> dict[int, list[chrome.Kernel]]:
    """The kernels of a Chrome trace by stream."""
    if source.head.startswith(_IN_CYCLES):
        raise InputError(
            f"{source.path} holds times inside of kernels, in cycles of single SMs",
            why="Proton's instrumentation recorded it; a trace has kernels and no place for parts of them",
            fix="record with Proton's default backend, or look at this file with Perfetto",
        )
    try:
        with open_bytes(source) as file:
            return chrome.kernels(JsonStream(file), left)
    except (*DAMAGED, Malformed) as error:
        raise InputError(f"{source.path} is no whole trace of Proton", why=str(error), fix=_FIX) from error


def _finish(recording: Recording, writer: TraceWriter, name: str) -> None:
    """Write the tables, what is known of the recording, and what both kinds of files lack."""
    vendors = {device.vendor for device in recording.devices.values()}
    if len(vendors) > 1:
        raise InputError(
            f"the files were recorded on GPUs of {' and '.join(sorted(vendors))}", fix="give one run's files"
        )
    recording.write(writer)
    writer.meta.update({"source": name, "collector": "proton", "vendor": vendors.pop(), "clock": "session"})
    unknown = sum(one.pid is None for one in recording.facts)
    writer.issue(
        "pid_unknown", unknown, "no steps.json lies beside the file: its process id is not known and 0 here"
    )
    files = len(recording.facts)
    writer.issue(
        "files_not_aligned",
        files if files > 1 else 0,
        "the times of each file (a rank, or a cycle of one) begin with its own first kernel: files cannot be "
        "laid side by side, and each is a process of its own here",
    )
    writer.issue(
        "name_mangled",
        len(recording.unreadable),
        "names of kernels that could not be turned into clear C++ names",
        recording.unreadable[0] if recording.unreadable else None,
    )
