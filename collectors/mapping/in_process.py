"""The mapping inside the program: torch.profiler with shapes, and what stands behind generated code.

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
from typing import TYPE_CHECKING, Any, Literal

from ...contract.codec import to_json
from ...contract.generated_code import ENDING, GeneratedCall, GeneratedCode, GeneratedFile, SourceLine
from ..torch.in_process import TorchRecorder
from ..torch.profiler import Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ...contract.recording import RecordingContext

_HANDLES = re.compile(r"^\s*# \[Provenance debug handles\] (?P<names>.+)$")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>\S+)', re.MULTILINE)


def recorder(context: RecordingContext) -> MappingRecorder:
    """The recorder of this process."""
    return MappingRecorder(context)


class MappingRecorder(TorchRecorder):
    """Records shapes, by which the kernels of other trials are found again, and no table.

    It does not warm up: its times are no measurement, and captures of CUDA graphs before the window are
    recorded, too, while torch has one profiler at a time.
    """

    starts_at: Literal["warmup", "active"] = "active"

    def __init__(self, context: RecordingContext) -> None:
        super().__init__(context, Options(record_shapes=True))
        self._capture: Any = None

    def begin_capture(self) -> bool:
        """Record the capture of a CUDA graph; False where this process is being recorded already."""
        if self._profile is not None or self._capture is not None:
            return False
        self._capture = capture = self._class.__new__(self._class)
        self._class_init(capture, activities=self._activities(), record_shapes=True)
        capture.start()
        return True

    def end_capture(self, number: int) -> None:
        """Write what was launched while the graph of this number was captured."""
        capture, self._capture = self._capture, None
        capture.stop()
        self._export(capture, self._name(f"capture{number}"))

    def _saved(self, name: str, profile: Any) -> None:
        folder = self.context.folder()
        code = generated_code()
        if code.files:
            partial = folder / f"{name}{ENDING}.partial"
            partial.write_text(json.dumps(to_json(code)) + "\n", encoding="utf-8")
            partial.replace(folder / f"{name}{ENDING}")


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
            yield GeneratedCall(number, kernel, tuple(_stacks(stacks.get(kernel, ()))))


def _calls(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?:\.run)?\(", line) is not None


def _stacks(texts: Iterable[str]) -> Iterator[tuple[SourceLine, ...]]:
    """Each different stack once."""
    for text in dict.fromkeys(texts):
        frames = tuple(
            SourceLine(found["file"], int(found["line"]), found["function"])
            for found in _FRAME.finditer(text)
        )
        if frames:
            yield frames
