"""Seeded faults in running profruns: what is done (``plan``), how (``inject``), what holds (``oracle``)."""
