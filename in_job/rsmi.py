"""AMD's management library (ROCm SMI) by ctypes: what the sampler reads of each GPU.

Source of the names, numbers and structures: rocm_smi.h of ROCm 5 to 7. Every function is optional: a library
may not have it, and a GPU may not support a value. It has been tested with a stand-in library only.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

from ..contract.machine import ROCM
from ..contract.sampling import SampledSource
from .clock_reasons import amd_reasons
from .gpu_source import Call, GpuReader, Library, LibraryError, Value, divided, seen_gpus

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN_LOCK = 0x400000000000000  # RSMI_INIT_FLAG_THRAD_ONLY_MUTEX: the program's calls do not wait for ours
_SYSTEM, _MEMORY = 0, 4  # RSMI_CLK_TYPE_SYS, RSMI_CLK_TYPE_MEM
_EDGE, _JUNCTION = 0, 1  # RSMI_TEMP_TYPE_*
_METRICS_BYTES = 65536  # rsmi_gpu_metrics_t, which grows from release to release
_THROTTLE_AT = 112  # offset of indep_throttle_status in it
_UNKNOWN = (1 << 64) - 1


def open_gpus(env: Mapping[str, str], path: str | None = None, *, everyone: bool = False) -> list[GpuReader]:
    """Readers of the GPUs that a program sees.

    Args:
        env: of the program: ``ROCR_VISIBLE_DEVICES`` and its like select.
        path: of the library, None for that of ROCm.
        everyone: all GPUs that the library shows, whatever the environment selects.

    Raises:
        LibraryError: it cannot be loaded or started.
    """
    library = Library([path] if path else [*_names()])
    failed = library.call("rsmi_init", ctypes.c_uint64(_OWN_LOCK))
    if failed is None:
        raise LibraryError("it has no rsmi_init")
    if failed:
        raise LibraryError(f"rsmi_init gives {failed}")
    count = library.number("rsmi_num_monitor_devices", kind=ctypes.c_uint32) or 0
    gpus = [_Gpu(library, index) for index in range(count)]
    ids = [f"GPU-{gpu.uuid()}" for gpu in gpus]
    places = range(count) if everyone else seen_gpus(env, "amd", ids)
    return [gpus[place].reader() for place in places]


def _names() -> list[str]:
    """Where the library may be; without the development files it has the number of its release."""
    found = sorted(str(path) for path in (ROCM / "lib").glob("librocm_smi64.so*"))
    return ["librocm_smi64.so", *found, *(f"librocm_smi64.so.{number}" for number in (1, 7, 6, 5))]


class _Gpu:
    """One GPU of the library."""

    def __init__(self, library: Library, index: int) -> None:
        self._library = library
        self._index = index
        self._device = ctypes.c_uint32(index)
        self._metrics = ctypes.create_string_buffer(_METRICS_BYTES)
        self._frequencies = ctypes.create_string_buffer(1024)

    def uuid(self) -> str:
        """The id that ROCR_VISIBLE_DEVICES names it by, behind 'GPU-'."""
        found = self._long("rsmi_dev_unique_id_get")
        return "" if found is None else f"{found:016x}"

    def reader(self) -> GpuReader:
        """What can be read of it."""
        clocks = self._clocks(_SYSTEM)
        source = SampledSource(
            kind="gpu",
            quantities=(),
            vendor="amd",
            index=self._index,
            uuid=self.uuid() or None,
            name=self._library.text("rsmi_dev_name_get", self._device, size=ctypes.c_size_t),
            power_limit_w=divided(self._long("rsmi_dev_power_cap_get", ctypes.c_uint32(0)), 1_000_000),
            max_sm_clock_mhz=max(clocks[1]) if clocks and clocks[1] else None,
            library=self._version(),
        )
        return GpuReader(source, self._calls())

    def _calls(self) -> list[Call]:
        first = ctypes.c_uint32(0)
        return [
            Call(("energy",), lambda: (self._energy(),)),
            Call(("power",), lambda: (divided(self._long("rsmi_dev_current_socket_power_get"), 1_000_000),)),
            Call(
                ("power_average",), lambda: (divided(self._long("rsmi_dev_power_ave_get", first), 1_000_000),)
            ),
            Call(("sm_clock",), lambda: (self._clock(_SYSTEM),)),
            Call(("memory_clock",), lambda: (self._clock(_MEMORY),)),
            Call(("temperature",), lambda: (self._temperature(_JUNCTION),)),
            Call(("temperature",), lambda: (self._temperature(_EDGE),)),
            Call(("reasons",), lambda: (self._reasons(),)),
            Call(("memory_used",), lambda: (self._long("rsmi_dev_memory_usage_get", ctypes.c_int(0)),)),
            Call(
                ("utilization",), lambda: (self._library.number("rsmi_dev_busy_percent_get", self._device),)
            ),
        ]

    def _long(self, name: str, *arguments: object) -> int | None:
        return self._library.number(name, self._device, *arguments, kind=ctypes.c_uint64)

    def _version(self) -> str | None:
        found = (ctypes.c_uint64 * 4)()  # rsmi_version_t: three numbers of 4 bytes, and a text
        if self._library.call("rsmi_version_get", found) != 0:
            return None
        return "ROCm SMI {}.{}.{}".format(*struct.unpack_from("=3I", found))

    def _energy(self) -> Value:
        """The counter times its resolution, uJ as J."""
        count, when, unit = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_float()
        arguments = [ctypes.byref(place) for place in (count, unit, when)]
        if self._library.call("rsmi_dev_energy_count_get", self._device, *arguments) != 0:
            return None
        return round(count.value * unit.value / 1e6, 3) if count.value else None

    def _temperature(self, sensor: int) -> Value:
        arguments = (ctypes.c_uint32(sensor), ctypes.c_int(0))  # RSMI_TEMP_CURRENT, mC
        found = self._library.number(
            "rsmi_dev_temp_metric_get", self._device, *arguments, kind=ctypes.c_int64
        )
        return divided(found, 1000)

    def _clock(self, kind: int) -> Value:
        found = self._clocks(kind)
        return None if found is None or found[0] >= len(found[1]) else found[1][found[0]]

    def _clocks(self, kind: int) -> tuple[int, list[float]] | None:
        """Which of the clocks it has now, and all that it can have, MHz (rsmi_frequencies_t).

        The structure begins with has_deep_sleep since ROCm 6: then a small number is where the first
        frequency was before, in Hz.
        """
        buffer = self._frequencies
        ctypes.memset(buffer, 0, len(buffer))
        arguments = (self._device, ctypes.c_int(kind), buffer)
        if self._library.call("rsmi_dev_gpu_clk_freq_get", *arguments) != 0:
            return None
        old = struct.unpack_from("=Q", buffer, 8)[0] > 1000
        count, now = struct.unpack_from("=2I", buffer, 0 if old else 4)
        hertz = struct.unpack_from(f"={min(count, 33)}Q", buffer, 8 if old else 16)
        return now, [value / 1e6 for value in hertz]

    def _reasons(self) -> Value:
        """Of rsmi_gpu_metrics_t; all bits are set where the GPU does not tell."""
        if self._library.call("rsmi_dev_gpu_metrics_info_get", self._device, self._metrics) != 0:
            return None
        mask: int = struct.unpack_from("=Q", self._metrics, _THROTTLE_AT)[0]
        return None if mask == _UNKNOWN else amd_reasons(mask)
