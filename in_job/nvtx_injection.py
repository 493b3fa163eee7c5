"""NVTX ranges without any NVTX library: what a profiler injects is called through the NVTX tools interface.

nsys and ncu set ``NVTX_INJECTION64_PATH`` to the library that listens to NVTX. Every NVTX client (the nvtx
package, torch.cuda.nvtx) loads that library and hands it an export table through which it fills in its
function pointers. This module does the same with ctypes, so ranges are recorded in images without the nvtx
package, with CPU builds of torch (which have no NVTX), and with an nsys that cannot understand the installed
nvtx (0.2.12 and later lose every range under nsys 2024.2 and before, without a word).

Measured with nsys 2024.2.3 on Python 3.11: about 1 us for a push and a pop while recorded.
The layout is that of NVTX 3 (nvtxTypes.h): module 1 is CORE, slots 9 and 11 are RangePushA
and RangePop; export table 1 holds the callbacks, 3 the version. nsys wants to see every module it knows.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

_CORE = 1
_SLOTS = {_CORE: 16, 2: 9, 3: 15, 4: 7, 5: 16, 6: 6}  # core, cuda, opencl, cudart, core2, sync
_PUSH_A, _POP = 9, 11
_TABLE_CALLBACKS, _TABLE_VERSION = 1, 3
_NVTX_VERSION = 2

_GetModule = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)
_SetVersion = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
_GetExportTable = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)


class _Callbacks(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("get_module_function_table", _GetModule)]


class _VersionInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("reserved0", ctypes.c_uint32),
        ("set_injection_nvtx_version", _SetVersion),
    ]


def _pointers_into(slots: ctypes.Array[ctypes.c_void_p]) -> ctypes.Array[ctypes.c_void_p]:
    """Addresses of the slots (0 is unused), ended by NULL: what NVTX calls a function table."""
    table = (ctypes.c_void_p * (len(slots) + 1))()
    width = ctypes.sizeof(ctypes.c_void_p)
    for slot in range(1, len(slots)):
        table[slot] = ctypes.addressof(slots) + slot * width
    return table


class NvtxInjection:
    """Push and pop ranges of the default domain straight into the profiler's library.

    Args:
        path: the injected library (the value of ``NVTX_INJECTION64_PATH``).

    Raises:
        OSError: the library cannot be loaded, is no NVTX tool, or records no push/pop ranges.
    """

    def __init__(self, path: str) -> None:
        self._slots = {module: (ctypes.c_void_p * size)() for module, size in _SLOTS.items()}
        self._tables = {module: _pointers_into(slots) for module, slots in self._slots.items()}
        # Kept for the life of the process: the tool may call back at any time.
        self._get_module = _GetModule(self._on_get_module)
        self._set_version = _SetVersion(lambda version: None)
        self._callbacks = _Callbacks(ctypes.sizeof(_Callbacks), self._get_module)
        self._info = _VersionInfo(ctypes.sizeof(_VersionInfo), _NVTX_VERSION, 0, self._set_version)
        self._export = _GetExportTable(self._on_get_export_table)
        self._library = ctypes.CDLL(path)
        try:
            initialize = self._library.InitializeInjectionNvtx2
        except AttributeError:
            raise OSError(f"{path} is not an NVTX tool: it has no InitializeInjectionNvtx2") from None
        initialize.restype = ctypes.c_int
        initialize.argtypes = [_GetExportTable]
        accepted = initialize(self._export)
        push, pop = self._slots[_CORE][_PUSH_A], self._slots[_CORE][_POP]
        if not accepted or push is None or pop is None:
            raise OSError(f"{path} does not record NVTX push/pop ranges now")
        self._push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(push)
        self._pop = ctypes.CFUNCTYPE(ctypes.c_int)(pop)

    def push(self, name: str) -> None:
        """Open a range on this thread; ``name`` is cut at a NUL character, as NVTX itself does."""
        self._push(name.encode("utf-8", "replace"))

    def pop(self) -> None:
        """Close the innermost range of this thread."""
        self._pop()

    def _on_get_module(self, module: int, table: Any, size: Any) -> int:
        if module not in _SLOTS:
            return 0
        if size:
            size[0] = _SLOTS[module]
        if table:
            table[0] = ctypes.addressof(self._tables[module])
        return 1

    def _on_get_export_table(self, number: int) -> int | None:
        if number == _TABLE_CALLBACKS:
            return ctypes.addressof(self._callbacks)
        if number == _TABLE_VERSION:
            return ctypes.addressof(self._info)
        return None


def connect(environ: Mapping[str, str] | None = None) -> NvtxInjection | None:
    """The profiler that listens in this process, or None when there is none or it does not record NVTX."""
    path = (os.environ if environ is None else environ).get("NVTX_INJECTION64_PATH")
    if not path:
        return None
    try:
        return NvtxInjection(path)
    except OSError:
        return None
