"""Tests with the jobs that come with profrun, run for real on the CPU."""
