"""Carrying out a run: make its folder, drive its trials on a backend, turn their files into traces.

``create`` makes the run, ``drive`` carries it out (or on), ``trial`` readies and closes one trial,
``points`` says what the run measured. Nothing here analyses a trace or prints: the cli joins those.
"""
