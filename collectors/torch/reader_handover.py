"""The tables that the parts of the kineto reader hand to each other: what a row is, and what its columns are.

``reader_compiled.gather`` and ``reader_stage.gather`` offer the staged events under the same names; which of
the two read them makes no difference afterwards. Everything else is made from these. Times are ns.
"""

from __future__ import annotations

TABLES = {
    # --- staged events, by the reader_compiled or reader_stage. row: number of the event, in the order of the
    # files: from bit FILE_BITS on the file's number. src: number of the file, from 0. ---
    # texts that other tables hold as numbers: names of events, and dims and types of ops
    "k_text": "number, text",
    # every complete event (ph X). owner: in k_owner; name: in k_text; ts, dur: as the file has them;
    # corr: correlation id, NULL for 0; tie: decides between events of the same time
    "k_core": "row, owner, name, ts, dur, corr, tie",
    # all that events say of whose they are, as the file writes it: what is distinct; first: earliest ts
    "k_owner": "owner, src, cat, pid, tid, dev, stream, rank, events, first",
    # arguments of kernels, copies and fills, and of calls that state a grid. grid, block: lists of three
    "k_gpu": "row, xid, registers, smem, grid, block, occupancy, bytes, graph, graph_node",
    # arguments of ops and ranges. xid: external id; dims, types: in k_text; seq: links forward and backward
    "k_op": "row, xid, dims, types, seq",
    # arguments of collectives, of what has any
    "k_coll": "row, coll, in_nelems, out_nelems, group_size, dtype, pg, own_rank, pg_ranks",
    # samples of the allocator; sizes in bytes
    "k_memory": "row, src, ts, dev_type, dev_id, allocated, reserved, mem_bytes, rank",
    # every other event (names of processes and threads, arrows, marks); label: the argument ``name``
    "k_other": "row, src, ph, cat, name, pid, tid, ts, flow, label, rank",
    # --- decided by the reader. shift: what is added to a file's times for the trace's axis ---
    # owner -> its track; part: number of the rank's part of the file, rank: what selects the part's events
    # (``reader_parts``); kind: of its slices; host: the track is a thread
    "k_track": "owner, src, part, rank, pid, tid, kind, track, host, shift",
    # file -> nvidia, amd or none
    "k_vendor": "src, vendor",
    # device of allocator samples -> its counter track
    "k_counter": "src, rank, dev_type, dev_id, track, shift",
    # --- made by reader_tables ---
    # slices in the order of the trace, with ids; times on the trace's axis
    "k_slice": "slice, row, kind, name, ts_ns, dur_ns, track, corr, src",
    # GPU slice -> the API call, or for want of one the op (by_op), that launched it
    "k_launch": "slice, launch, by_op",
}
"""Table or view -> its columns."""
