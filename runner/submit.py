"""Stub; see docs/architecture.md."""
