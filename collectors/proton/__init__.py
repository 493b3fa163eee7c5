"""Proton, the profiler of Triton (``triton.profiler``): its declaration, how it is driven in a job, its
files.

It records kernels, on NVIDIA through CUPTI and on AMD through roctracer or rocprofiler-sdk, and groups them
by scopes that the program opens or by Python's call stack. docs/collectors-proton.md says what is recorded
and how that was checked.
"""
