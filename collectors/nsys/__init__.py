"""Nsight Systems: its declaration, how it wraps a command, and the reader of its exports and reports."""
