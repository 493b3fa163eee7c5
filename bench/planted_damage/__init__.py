"""Damage that is planted into real recordings, and what profrun makes of it (bench/damage.py runs it)."""
