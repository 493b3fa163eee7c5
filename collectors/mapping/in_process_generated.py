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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...contract.code_paths import is_own, package_of
from ...contract.generated_code import (
    GeneratedCall,
    GeneratedCode,
    GeneratedFile,
    Operation,
    operations_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_HANDLES = re.compile(r"^\s*# \[Provenance debug handles\] (?P<names>.+)$")
_WORKSPACE = re.compile(r"\bworkspace_\d+\b")
_REDUCED = re.compile(r"^\s*\w+ = (?P<workspace>workspace_\d+)\[.+\]\.view\(.+\)\.\w+\(dim=0\)")
"""The second part of a reduction whose first part is in a kernel (torch/_inductor/codegen/simd.py,
``_codegen_mix_order_reduction``)."""


def generated_code(packages: Collection[str] = ()) -> GeneratedCode:
    """The generated code of all graphs that are compiled in this process; empty without torch.compile.

    Args:
        packages: installed packages whose files count as the program's own.
    """
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
            rows = calls(one.source_code, json.loads(stacks or "{}"), packages)
            found[path] = GeneratedFile(path, tuple(rows))
    return GeneratedCode(tuple(found[path] for path in sorted(found)))


def calls(
    text: str, stacks: Mapping[str, Iterable[str]], packages: Collection[str] = ()
) -> Iterator[GeneratedCall]:
    """The lines of generated code that call a kernel.

    Args:
        text: the code.
        stacks: kernel and handle -> the stacks of its operations, as Python prints them.
        packages: as for ``generated_code``.
    """
    waiting: list[str] = []
    filled: dict[str, str] = {}  # workspace -> the kernel that was called with it last
    for number, line in enumerate(text.splitlines(), 1):
        comment = _HANDLES.match(line)
        if comment:
            waiting = re.split(r"[,\s]+", comment["names"].strip())
            continue
        rest = _REDUCED.match(line)
        called = [one for one in waiting if _calls(line, one.rpartition(":")[0])]
        waiting = [one for one in waiting if one not in called]
        filled.update((workspace, kernel) for kernel in called for workspace in _WORKSPACE.findall(line))
        if rest and rest["workspace"] in filled:
            called = [filled[rest["workspace"]]]
        for kernel in called:
            yield GeneratedCall(number, kernel, tuple(_operations(stacks.get(kernel, ()), packages)))


def _calls(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?:\.run)?\(", line) is not None


def _operations(texts: Iterable[str], packages: Collection[str]) -> Iterator[Operation]:
    """Each different operation once; its lines say whether they are the program's own."""
    for one in dict.fromkeys(one for text in texts for one in operations_of(text)):
        stack = tuple(
            replace(line, own=is_own(line.file) or package_of(line.file) in packages) for line in one.stack
        )
        yield replace(one, stack=stack)
