"""A stand-in for Triton: only its profiler, see there."""
