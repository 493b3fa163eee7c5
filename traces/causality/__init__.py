"""Causality constraints of a recording: what must have happened before what, and what the times say of it.

A kernel starts after the call that launched it began, and ends before a call that waited for it returned.
Host and GPU have clocks of their own; a profiler converts one to the other. Each such pair of times bounds
the error of that conversion. ``judge`` finds the bounds of every GPU clock, and records that contradict each
other.
"""
