"""NVIDIA's management library (NVML) by ctypes: what the sampler reads of each GPU.

Source of the names, numbers and structures: nvml.h of CUDA 12. Every function is optional: an older library
has fewer, and a GPU may not support a value.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ..contract.sampling import SampledSource
from ..contract.visible_devices import plain_uuid
from .clock_reasons import nvml_reasons
from .gpu_source import Call, GpuReader, Library, LibraryError, Value, divided, seen_gpus
from .gpu_use import GpuProcess, GpuUse, owner

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY = "libnvidia-ml.so.1"
_ENERGY, _POWER_AVERAGE, _POWER_INSTANT = 83, 185, 186  # NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, _POWER_*
_TOTAL_ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
_SM, _MEMORY = ctypes.c_uint(1), ctypes.c_uint(2)  # nvmlClockType_t
_CHIP = ctypes.c_uint(0)  # NVML_TEMPERATURE_GPU
_UNKNOWN = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE
_TOO_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE


class _Number(ctypes.Union):
    """nvmlValue_t."""

    _fields_ = (
        ("d", ctypes.c_double),
        ("ui", ctypes.c_uint),
        ("ul", ctypes.c_ulong),
        ("ull", ctypes.c_ulonglong),
        ("sll", ctypes.c_longlong),
        ("si", ctypes.c_int),
    )


_MEMBERS = ("d", "ui", "ul", "ull", "sll", "si")  # by nvmlValueType_t


class _Field(ctypes.Structure):
    """nvmlFieldValue_t."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("type", ctypes.c_int),
        ("result", ctypes.c_int),
        ("value", _Number),
    )


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class _Utilization(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t, the one of the functions that end in _v3."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def open_gpus(env: Mapping[str, str], path: str | None = None, *, everyone: bool = False) -> list[GpuReader]:
    """Readers of the GPUs that a program sees.

    Args:
        env: of the program: ``CUDA_VISIBLE_DEVICES`` selects.
        path: of the library, None for the driver's own.
        everyone: all GPUs that the library shows, whatever the environment selects.

    Raises:
        LibraryError: it cannot be loaded, or finds no driver.
    """
    nvml = _loaded(path)
    handles = nvml.handles()
    uuids = [nvml.text("nvmlDeviceGetUUID", handle) or "" for handle in handles.values()]
    places = list(range(len(uuids))) if everyone else nvml.seen(env, uuids)
    indices = list(handles)
    return [nvml.reader(indices[place], handles[indices[place]], uuids[place]) for place in places]


def gpu_uses(path: str | None = None) -> list[GpuUse]:
    """Who uses each GPU that the library shows, whatever the environment selects.

    Args:
        path: of the library, None for the driver's own.

    Raises:
        LibraryError: it cannot be loaded, or finds no driver.
    """
    nvml = _loaded(path)
    return [
        GpuUse(index, nvml.text("nvmlDeviceGetUUID", handle) or "", nvml.memory(handle), nvml.running(handle))
        for index, handle in nvml.handles().items()
    ]


def _loaded(path: str | None) -> _Nvml:
    library = Library([path or LIBRARY])
    failed = library.call("nvmlInit_v2")
    if failed is None:
        raise LibraryError("it has no nvmlInit_v2")
    if failed:
        raise LibraryError(f"nvmlInit_v2 gives {failed} ({_error(library, failed)})")
    return _Nvml(library)


def _error(library: Library, code: int) -> str:
    function = library.function("nvmlErrorString")
    if function is None:
        return "no description"
    function.restype = ctypes.c_char_p
    return str(function(code).decode("utf-8", "replace"))


class _Nvml:
    """The GPUs that the library shows."""

    def __init__(self, library: Library) -> None:
        self.call = library.call
        self.number = library.number
        self.text = library.text
        texts = (
            (title, self.text(f"nvmlSystemGet{name}Version"))
            for title, name in (("NVML", "NVML"), ("driver", "Driver"))
        )
        self._version = ", ".join(f"{title} {text}" for title, text in texts if text is not None)

    def handles(self) -> dict[int, Any]:
        """Index -> handle of the GPUs that this process may use."""
        count = ctypes.c_uint()
        if self.call("nvmlDeviceGetCount_v2", ctypes.byref(count)) != 0:
            return {}
        found = {}
        for index in range(count.value):
            handle = ctypes.c_void_p()
            if self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle)) == 0:
                found[index] = handle
        return found

    def seen(self, env: Mapping[str, str], uuids: list[str]) -> list[int]:
        """Places in ``uuids`` of the GPUs that the environment selects; a part of a GPU (MIG) selects it."""
        listed = env.get("CUDA_VISIBLE_DEVICES", "")
        whole = [self._whole(one.strip()) for one in listed.split(",")]
        return seen_gpus({**env, "CUDA_VISIBLE_DEVICES": ",".join(whole)} if listed else env, "nvidia", uuids)

    def _whole(self, one: str) -> str:
        """The uuid of the GPU that a MIG device is a part of; every other entry as it is."""
        part, whole = ctypes.c_void_p(), ctypes.c_void_p()
        if not one.startswith("MIG-"):
            return one
        if self.call("nvmlDeviceGetHandleByUUID", one.encode("utf-8", "replace"), ctypes.byref(part)) != 0:
            return one
        if self.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", part, ctypes.byref(whole)) != 0:
            return one
        return self.text("nvmlDeviceGetUUID", whole) or one

    def reader(self, index: int, handle: Any, uuid: str) -> GpuReader:
        """What can be read of one GPU."""
        limit = self.number("nvmlDeviceGetEnforcedPowerLimit", handle)
        clock = self.number("nvmlDeviceGetMaxClockInfo", handle, _SM)
        source = SampledSource(
            kind="gpu",
            quantities=(),
            vendor="nvidia",
            index=index,
            uuid=plain_uuid(uuid) or None,
            name=self.text("nvmlDeviceGetName", handle),
            power_limit_w=divided(limit, 1000),
            max_sm_clock_mhz=None if clock is None else float(clock),
            library=self._version or None,
        )
        return GpuReader(source, self._calls(handle))

    def _calls(self, handle: Any) -> list[Call]:
        """All that is read of a GPU; energy first, because its time matters most."""
        number = self.number
        fields = _Fields(self, handle)
        wide = ctypes.c_ulonglong
        return [
            Call(("energy", "power_average", "power"), fields.read),
            Call(("energy",), lambda: (divided(number(_TOTAL_ENERGY, handle, kind=wide), 1000),)),
            Call(("power_average",), lambda: (divided(number("nvmlDeviceGetPowerUsage", handle), 1000),)),
            Call(("sm_clock",), lambda: (number("nvmlDeviceGetClockInfo", handle, _SM),)),
            Call(("memory_clock",), lambda: (number("nvmlDeviceGetClockInfo", handle, _MEMORY),)),
            Call(("temperature",), lambda: (number("nvmlDeviceGetTemperature", handle, _CHIP),)),
            Call(("reasons",), lambda: (self._reasons(handle, "nvmlDeviceGetCurrentClocksEventReasons"),)),
            Call(("reasons",), lambda: (self._reasons(handle, "nvmlDeviceGetCurrentClocksThrottleReasons"),)),
            Call(("memory_used",), lambda: (self.memory(handle),)),
            Call(("utilization",), lambda: (self._utilization(handle),)),
            Call(("processes",), lambda: (self._processes(handle),)),
        ]

    def _reasons(self, handle: Any, name: str) -> Value:
        mask = self.number(name, handle, kind=ctypes.c_ulonglong)
        return None if mask is None else nvml_reasons(mask)

    def memory(self, handle: Any) -> int | None:
        """Bytes of a GPU that are in use."""
        found = _Memory()
        return (
            int(found.used)
            if self.call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(found)) == 0
            else None
        )

    def _utilization(self, handle: Any) -> Value:
        found = _Utilization()
        failed = self.call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(found))
        return found.gpu if failed == 0 else None

    def running(self, handle: Any) -> tuple[GpuProcess, ...]:
        """The processes that compute on a GPU; empty where the library does not say."""
        room = self._processes(handle) or 0
        list_ = (_Process * (int(room) + 8))()  # more may have come since it was asked for their number
        count = ctypes.c_uint(len(list_))
        if self.call("nvmlDeviceGetComputeRunningProcesses_v3", handle, ctypes.byref(count), list_) != 0:
            return ()
        return tuple(
            GpuProcess(one.pid, owner(one.pid), None if one.memory == _UNKNOWN else one.memory)
            for one in list_[: count.value]
        )

    def _processes(self, handle: Any) -> Value:
        """How many there are: asked with room for none, the library says how much room it needs."""
        count = ctypes.c_uint(0)
        failed = self.call("nvmlDeviceGetComputeRunningProcesses_v3", handle, ctypes.byref(count), None)
        return count.value if failed in (0, _TOO_SMALL) else None


class _Fields:
    """Energy and both powers, read in one call."""

    def __init__(self, nvml: _Nvml, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._fields = (_Field * 3)()
        for field, number in zip(self._fields, (_ENERGY, _POWER_AVERAGE, _POWER_INSTANT)):
            field.field = number

    def read(self) -> list[Value]:
        """J, W averaged by the driver, W at one moment."""
        fields = self._fields
        for field in fields:
            field.result = -1
        if self._nvml.call("nvmlDeviceGetFieldValues", self._handle, ctypes.c_int(3), fields) != 0:
            return [None, None, None]
        return [_field_value(field) for field in fields]


def _field_value(field: _Field) -> float | None:
    if field.result != 0 or not 0 <= field.type < len(_MEMBERS):
        return None
    return float(getattr(field.value, _MEMBERS[field.type])) / 1000
