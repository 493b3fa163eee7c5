"""C++ names of kernels in clear: Proton writes them as the linker knows them, torch and nsys in clear."""

from __future__ import annotations

import ctypes
from functools import cache

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib")


def demangle(name: str) -> str | None:
    """A mangled C++ name in clear, as the C++ runtime's own function gives it.

    Returns:
        The name itself where it is not mangled; None where it is mangled and cannot be read (no C++ runtime
        here, or no valid name).
    """
    if not name.startswith("_Z"):
        return name
    runtime = _runtime()
    if runtime is None:
        return None
    status = ctypes.c_int(0)
    found = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return None
    try:
        return ctypes.string_at(found).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(found))


@cache
def _runtime() -> ctypes.CDLL | None:
    """The C++ runtime library of this machine."""
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        return library
    return None
