"""Nsight Systems: how it wraps a command, and the reader of what it leaves."""
