"""Nsight Compute: its declaration, how it wraps a command, and the readers of its reports and CSV pages."""
