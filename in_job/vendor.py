"""Whose GPUs are here, found without torch; their state; and which environment variables steer them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..contract.finding import Finding
from ..contract.launch_blocking import BLOCKING_ENV, BLOCKING_VARIABLES
from ..contract.visible_devices import VISIBLE_DEVICES, visible_devices
from .clock_reasons import nvml_names

_ALL_VISIBLE = VISIBLE_DEVICES["amd"]


def detect(root: Path = Path("/")) -> tuple[str, str]:
    """(nvidia, amd or none; how it was found). Devices and drivers count, not libraries."""
    if (root / "proc/driver/nvidia/version").exists() and any((root / "dev").glob("nvidia[0-9]*")):
        return "nvidia", "/proc/driver/nvidia and /dev/nvidia*"
    listing = _listing() if root == Path("/") else ""
    if "GPU 0" in listing:
        return "nvidia", "nvidia-smi -L"
    if amd_gpus(root):
        return "amd", "/dev/kfd and a GPU node in the kernel's topology"
    return "none", "neither an NVIDIA driver with a GPU nor /dev/kfd with one"


def amd_gpus(root: Path = Path("/")) -> list[dict[str, str]]:
    """Properties of the kernel's GPU nodes (those with SIMDs), empty without /dev/kfd."""
    if not (root / "dev/kfd").exists():
        return []
    found = []
    for path in sorted((root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties")):
        try:
            pairs = [line.split(maxsplit=1) for line in path.read_text().splitlines()]
        except OSError:
            continue
        properties = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
        if properties.get("simd_count", "0") != "0":
            found.append({"node": path.parent.name, **properties})
    return found


def _listing() -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    return output(["nvidia-smi", "-L"])


def output(argv: list[str], timeout: float = 15.0) -> str:
    """Standard output of a short command, empty when it fails, hangs or is not there."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=timeout)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def blocking_env(env: dict[str, str], vendor: str, *, blocking: bool) -> list[Finding]:
    """Set launch blocking for this vendor in ``env``, or take every variable of it out.

    Returns:
        What the user should know of it.
    """
    told = []
    wanted = BLOCKING_ENV.get(vendor, BLOCKING_ENV["nvidia"]) if blocking else {}
    for name in BLOCKING_VARIABLES:
        if name in wanted:
            env[name] = wanted[name]
        elif env.pop(name, None) not in (None, "", "0") and not blocking:
            what = f"{name} was set and has been unset: this trial does not block launches"
            told.append(Finding("blocking-unset", "warning", what))
    if blocking and vendor == "none":
        what = "launch blocking changes nothing here: there is no GPU"
        told.append(Finding("blocking-without-gpu", "warning", what))
    return told


def visible_env(env: dict[str, str], vendor: str) -> list[Finding]:
    """Keep one device-visibility variable, the vendor's own (Slurm sets three).

    Returns:
        Which ones were taken out of ``env``.
    """
    present = [name for name in VISIBLE_DEVICES.get(vendor, ()) if name in env]
    keep = present[:1]
    told = []
    for name in _ALL_VISIBLE:
        if name in env and name not in keep and vendor != "none":
            what = f"{name}={env.pop(name)} was unset: {keep[0] if keep else 'nothing'} selects the GPUs"
            told.append(Finding("visibility-unset", "info", what))
    return told


def host_ordinal(env: Mapping[str, str], vendor: str, ordinal: int) -> int | None:
    """Number on the host of a GPU that the process sees as ``ordinal``.

    None where no variable selects GPUs, where two do, or where it names them in another way than by numbers.
    """
    chosen = visible_devices(env, vendor)
    if ordinal >= len(chosen) or not all(one.isascii() and one.isdigit() for one in chosen[: ordinal + 1]):
        return None
    return int(chosen[ordinal])


def nvidia_state() -> list[dict[str, object]]:
    """Name, driver, clocks (MHz), temperature (C), power (W), throttle reasons of each GPU, by nvidia-smi."""
    fields = (
        "index,name,uuid,driver_version,pci.bus_id,memory.total,memory.used,utilization.gpu,clocks.sm,clocks.mem,"
        "clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw,power.limit,persistence_mode,compute_mode"
    )
    if shutil.which("nvidia-smi") is None:
        return []
    for throttle in (",clocks_event_reasons.active", ",clocks_throttle_reasons.active", ""):
        names = (fields + throttle).split(",")
        text = output(["nvidia-smi", f"--query-gpu={fields}{throttle}", "--format=csv,noheader,nounits"])
        if text:
            return [_gpu(names, line) for line in text.splitlines() if line.count(",") >= len(names) - 1]
    return []


def _gpu(names: list[str], line: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for name, value in zip(names, (part.strip() for part in line.split(","))):
        key = name.replace(".", "_").replace("clocks_event_reasons", "clocks_throttle_reasons")
        row[key] = None if value in ("[N/A]", "N/A", "[Not Supported]", "") else _number(value)
    mask = row.get("clocks_throttle_reasons_active")
    if isinstance(mask, str) and mask.startswith("0x"):
        row["throttled_by"] = nvml_names(int(mask, 16))
    return row


def _number(value: str) -> int | float | str:
    try:
        return int(value)
    except ValueError:
        try:
            return float(value)
        except ValueError:
            return value


def amd_state() -> list[dict[str, object]]:
    """What amd-smi (or rocm-smi) says of clocks, temperatures, power, throttling, in the tool's own words."""
    commands = (
        ["amd-smi", "metric", "--json"],
        [
            "rocm-smi",
            "--showproductname",
            "--showuniqueid",
            "--showtemp",
            "--showclocks",
            "--showpower",
            "--json",
        ],
    )
    for command in commands:
        if shutil.which(command[0]) is None:
            continue
        try:
            value = json.loads(output(command))
        except ValueError:
            continue
        rows = value if isinstance(value, list) else value.get("gpu_data", value)
        if isinstance(rows, dict):
            rows = [{"card": card, **fields} for card, fields in rows.items() if isinstance(fields, dict)]
        return [{"by": command[0], **row} for row in rows if isinstance(row, dict)]
    return []


def state(vendor: str) -> list[dict[str, object]]:
    """The GPUs' state now, one row per GPU; empty when no tool tells."""
    if vendor == "nvidia":
        return nvidia_state()
    if vendor == "amd":
        return amd_state()
    return []
