"""What stands behind the code that torch.compile has generated in this process: ``generated_code``.

Every graph that Inductor has compiled is an object that holds its generated code and, with
``INDUCTOR_PROVENANCE=1``, the Python stacks of the operations in each kernel, also where it came from
Inductor's cache (torch/_inductor/output_code.py, ``CompiledFxGraph``).
Shipped into the job: standard library only, Python 3.9.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...contract.generated_code import (
    GeneratedCall,
    GeneratedCode,
    GeneratedFile,
    Operation,
    operations_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_HANDLES = re.compile(r"^\s*# \[Provenance debug handles\] (?P<names>.+)$")


def generated_code() -> GeneratedCode:
    """The generated code of all graphs that are compiled in this process; empty without torch.compile."""
    graph = getattr(sys.modules.get("torch._inductor.output_code"), "CompiledFxGraph", None)
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    if graph is None or cache is None:
        return GeneratedCode()
    paths = {Path(module.__file__).stem: module.__file__ for module in cache.modules}
    found: dict[str, GeneratedFile] = {}
    for one in gc.get_objects():
        path = paths.get(one.cache_key) if type(one) is graph else None
        if path is not None and one.source_code:
            stacks = getattr(one, "inductor_provenance_stack_traces_str", None)
            found[path] = GeneratedFile(path, tuple(calls(one.source_code, json.loads(stacks or "{}"))))
    return GeneratedCode(tuple(found[path] for path in sorted(found)))


def calls(text: str, stacks: Mapping[str, Iterable[str]]) -> Iterator[GeneratedCall]:
    """The lines of generated code that call a kernel.

    Args:
        text: the code.
        stacks: kernel and handle -> the stacks of its operations, as Python prints them.
    """
    waiting: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        comment = _HANDLES.match(line)
        if comment:
            waiting = re.split(r"[,\s]+", comment["names"].strip())
            continue
        for kernel in [one for one in waiting if _calls(line, one.rpartition(":")[0])]:
            waiting.remove(kernel)
            yield GeneratedCall(number, kernel, tuple(_operations(stacks.get(kernel, ()))))


def _calls(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?:\.run)?\(", line) is not None


def _operations(texts: Iterable[str]) -> Iterator[Operation]:
    """Each different operation once."""
    yield from dict.fromkeys(one for text in texts for one in operations_of(text))
