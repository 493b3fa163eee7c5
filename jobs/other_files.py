"""Files that were given as a job spec but are something else: programs, notebooks, files of profilers."""

from __future__ import annotations

from pathlib import Path

from profrun.errors import UsageError

_SPEC_ENDINGS = (".yaml", ".yml", ".json")  # JSON is YAML


def refuse_others(path: Path, content: bytes) -> None:
    """Say what a file is that cannot be a job spec, and which command takes it.

    Args:
        content: the file, or the beginning of a large one.

    Raises:
        UsageError: it is a Python program, a notebook, another program, or no text.
    """
    ending = path.suffix.lower()
    if ending == ".py":
        raise UsageError(
            f"{path} is a Python program, not a job spec",
            fix=f"profile it with `profrun run -- python {path}`, or write a spec with `profrun init {path}`",
        )
    if ending == ".ipynb":
        raise UsageError(
            f"{path} is a notebook, not a job spec",
            fix=f"make a program of it with `jupyter nbconvert --to script {path}`, then profile that: "
            f"`profrun run -- python {path.with_suffix('.py')}`",
        )
    if ending in _SPEC_ENDINGS:
        return
    if content.startswith((b"\x7fELF", b"#!")):
        program = path if path.is_absolute() or path.parent != Path() else f"./{path}"
        raise UsageError(
            f"{path} is a program, not a job spec", fix=f"profile it with `profrun run -- {program}`"
        )
    if b"\0" in content[:4096]:
        raise UsageError(
            f"{path} is not a text file, so it is not a job spec",
            fix=f"if it is a profiler's file, `profrun summary {path}` reads it",
        )
