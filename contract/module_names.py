"""What the hook, the compiler's documents and the analysis call nn.Modules: by their qualified names."""

from __future__ import annotations

ROOT = "root"
"""The name of the module that has no qualified name: the outermost one."""
