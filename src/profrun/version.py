"""The version of profrun. It stands alone so that every room may import it."""

from __future__ import annotations

VERSION = "0.2.0"
