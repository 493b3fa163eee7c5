"""Waits until the GPUs that this process uses are idle, whichever framework uses them."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .torch_types import Torch

_CUDA = "libcuda.so.1"


def wait_until_idle(torch: Torch) -> bool:
    """Wait for the work that was given to the GPUs. Nothing is initialised by asking.

    CUDA contexts of other frameworks (JAX, CuPy, Numba) are found through the driver's library, where the
    process has it loaded: only devices whose primary context is active are waited for. A GPU that fails is
    waited for no longer. JAX is waited for first: it hands work to the GPU on threads of its own.

    Args:
        torch: the torch module, None when the process has none.

    Returns:
        Whether this process uses a GPU.
    """
    _jax_idle()
    used = torch is not None and bool(torch.cuda.is_initialized())
    if used:
        try:
            torch.cuda.synchronize()
        except RuntimeError:  # the GPU is gone (illegal access, reset)
            return True
    return _contexts_idle() or used


def driver() -> Any:
    """The CUDA driver's library, where the process has loaded it; else None."""
    try:
        return ctypes.CDLL(_CUDA, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def _jax_idle() -> None:
    """Wait for all arrays of JAX, where it has a backend; no work is given to the GPU."""
    jax, backends = sys.modules.get("jax"), sys.modules.get("jax._src.xla_bridge")
    try:
        if jax is not None and backends is not None and backends.backends_are_initialized():
            jax.block_until_ready(jax.live_arrays())
    except Exception:  # what a program's own computation raises is raised to the program when it reads it
        return


def _contexts_idle() -> bool:
    """Wait for every active primary context of the CUDA driver; whether there is one."""
    cuda = driver()
    if cuda is None:
        return False
    count = ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)):  # 3: cuInit was never called
        return False
    return sum(_device_idle(cuda, device) for device in range(count.value)) > 0


def _device_idle(cuda: Any, device: int) -> bool:
    """Wait for a device's primary context; whether it is active."""
    flags, active = ctypes.c_uint(), ctypes.c_int()
    if cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)) or not active.value:
        return False
    context = ctypes.c_void_p()
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        return True
    if not cuda.cuCtxPushCurrent_v2(context):
        cuda.cuCtxSynchronize()
        cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
    cuda.cuDevicePrimaryCtxRelease_v2(device)
    return True
