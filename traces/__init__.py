"""The common trace format: schema, write, open, check, views, export.

A trace is a folder: ``meta.json`` and one zstd Parquet file a table. ``schema.TABLES`` is the only
place where tables and columns are written down; DDL, checks and docs/trace-format.md come from it.
"""
