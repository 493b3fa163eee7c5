"""The memory that a program of a test has used at most."""

PEAK_KIB = "int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
"""Python for that program: its own peak, KiB. The peak of getrusage may be that of the program which
started it: exec keeps the larger one (setmax_mm_hiwater_rss in the kernel's fs/exec.c)."""
