"""Questions asked of one trace. Each module answers one: it is given a ``Trace`` and returns rows of
dataclasses.

``frame`` holds the slices as arrays, and nearly every question starts from it. ``data_quality`` tells which
numbers can be trusted, and ``summary`` asks all questions. docs/numbers.md defines every number.
"""
