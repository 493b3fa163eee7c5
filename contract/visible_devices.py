"""The environment variables that select the GPUs which a process sees, what they list, and uuids of GPUs."""

from __future__ import annotations

from collections.abc import Mapping

VISIBLE_DEVICES = {
    "nvidia": ("CUDA_VISIBLE_DEVICES",),
    # One of these filters; two filter twice: HIP's indices count what ROCR's left over.
    "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
}
"""vendor -> its variables."""


def visible_devices(env: Mapping[str, str], vendor: str) -> tuple[str, ...]:
    """The GPUs that the environment lists: numbers or uuids, in the order in which the process counts them.

    Empty where no variable lists any, and where two variables do.
    """
    lists = [env[name] for name in VISIBLE_DEVICES.get(vendor, ()) if env.get(name)]
    return tuple(one.strip() for one in lists[0].split(",")) if len(lists) == 1 else ()


def plain_uuid(stated: object) -> str:
    """A uuid as nvidia-smi, torch, nsys and the sampler have in common; empty where there is none."""
    text = str(stated).lower() if stated else ""
    return text[4:] if text.startswith("gpu-") else text
