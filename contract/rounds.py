"""What ``profrun improve`` and the rounds of a sequential job do where nobody says otherwise."""

FIRST = 3
"""Rounds before the first decision; an improvement has at least as many."""
MOST = 8
"""The most rounds of a stage of an improvement."""
BUDGET_S = 20 * 60.0
"""Time for all stages of an improvement, seconds."""
