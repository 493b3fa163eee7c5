"""The mapping inside the program: torch.profiler with shapes, and documents beside its file.

They tell what stands behind generated code, and which lines the program's files had.
Shipped into the job: standard library only, Python 3.9.
"""

from __future__ import annotations

import importlib
import json
import tokenize
from typing import TYPE_CHECKING, Any, Callable, Literal

from ...contract import generated_code as generated_code_file
from ...contract import source_digests as source_digests_file
from ...contract.codec import to_json
from ...contract.source_digests import SourceDigests, SourceFile, digests_of
from ..torch.in_process import TorchRecorder
from ..torch.profiler import Options
from .in_process_generated import generated_code
from .in_process_graphs import install

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...contract.recording import RecordingContext


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
        self._files: Callable[[], list[str]] = list
        install()

    def begin_capture(self) -> bool:
        """Record the capture of a CUDA graph; False where this process is being recorded already."""
        if self._profile is not None or self._capture is not None:
            return False
        self._capture = self._profiler()
        self._capture.start()
        return True

    def _settings(self) -> dict[str, Any]:
        """Threads that the program starts are recorded, too, where torch can: else only autograd's are."""
        config: Any = importlib.import_module("torch._C._profiler")
        try:
            more = {"experimental_config": config._ExperimentalConfig(profile_all_threads=True)}
        except (AttributeError, TypeError):  # before torch 2.6
            more = {}
        return {**super()._settings(), **more}

    def end_capture(self, number: int) -> None:
        """Write what was launched while the graph of this number was captured."""
        capture, self._capture = self._capture, None
        capture.stop()
        self._export(capture, self._name(f"capture{number}"))

    def follow(self, files: Callable[[], list[str]]) -> None:
        """Learn how to ask for the program's files whose lines have ranges."""
        self._files = files

    def _saved(self, name: str, profile: Any) -> None:
        packages = self.context.options.get("packages")
        code = generated_code(packages if isinstance(packages, (list, tuple)) else ())
        if code.files:
            self._write(f"{name}{generated_code_file.ENDING}", code)
        behind = {
            line.file
            for file in code.files
            for call in file.calls
            for one in call.operations
            for line in one.stack
        }
        found = source_digests(sorted({*self._files(), *behind}))
        if found.files:
            self._write(f"{name}{source_digests_file.ENDING}", found)

    def _write(self, name: str, document: Any) -> None:
        folder = self.context.folder()
        partial = folder / f"{name}.partial"
        partial.write_text(json.dumps(to_json(document)) + "\n", encoding="utf-8")
        partial.replace(folder / name)


def source_digests(files: Iterable[str]) -> SourceDigests:
    """The digests of the lines of these files; a file that cannot be read is left out."""
    found = []
    for name in files:
        try:
            with tokenize.open(name) as file:  # in the encoding that it declares
                found.append(SourceFile(name, digests_of(file.read())))
        except (OSError, SyntaxError, ValueError):
            continue
    return SourceDigests(tuple(found))
