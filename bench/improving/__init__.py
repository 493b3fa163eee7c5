"""The parts of ``bench/improve.py``."""
