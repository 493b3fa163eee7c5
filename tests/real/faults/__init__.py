"""Seeded faults in running profruns: what is injected (``plan``), how (``inject``), and what must hold (``oracle``)."""
