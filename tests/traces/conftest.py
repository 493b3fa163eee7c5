"""Real files as traces, as the tests of analysis have them."""

from tests.analysis.conftest import real

__all__ = ["real"]
