"""Which GPUs a trial used, and which rows of its provenance are theirs.

The vendor's tool tells the states of all GPUs of the machine. Other programs may work on the other GPUs, so
only the states of the GPUs that the trial used say anything about the trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from profrun.contract.provenance import GpuStates, Provenance
from profrun.contract.visible_devices import plain_uuid, visible_devices
from profrun.traces.memo import memoised
from profrun.traces.schema import DeviceRow

if TYPE_CHECKING:
    from profrun.traces.trace import Trace

GpuRow = Mapping[str, object]
"""The state of one GPU in the words of the vendor's tool."""


@dataclass(frozen=True)
class UsedGpus:
    """The GPUs that count for a trial.

    Attributes:
        states: their states before and after the trial.
        told: whether something tells which GPUs the trial used. If not, ``states`` has all of the machine.
    """

    states: GpuStates = field(default_factory=GpuStates)
    told: bool = False


def used_gpus(trace: Trace, provenance: Provenance | None) -> UsedGpus:
    """The states of the GPUs that the trial of a trace used.

    A GPU is found by its uuid, else by its number on the host. Where the trace has neither, the GPUs count
    that the environment of the trial selects. Where that tells nothing either, or no state is of these GPUs
    (MIG instances, tools that state neither uuid nor number), all GPUs of the machine count.
    """
    states = provenance.gpus if provenance else GpuStates()
    names = _names(trace, provenance) if provenance else None
    if names is None:
        return UsedGpus(states)
    before, after = (tuple(filter(names.has, rows)) for rows in (states.before, states.after))
    return UsedGpus(GpuStates(before, after), told=True) if before or after else UsedGpus(states)


@memoised
def used_devices(trace: Trace) -> Sequence[DeviceRow]:
    """The devices with recorded GPU work; all that the trace lists where it has no GPU work."""
    worked = trace.sql(
        "SELECT DISTINCT t.device FROM slices s JOIN tracks t USING (track) "
        "WHERE s.kind IN ('kernel', 'memcpy', 'memset')"
    )
    used = {device for (device,) in worked.rows}
    rows = cast("list[DeviceRow]", trace.sql("SELECT * FROM devices ORDER BY device").dicts())
    return [row for row in rows if row["device"] in used] or rows


@dataclass(frozen=True)
class _Names:
    """Uuids (without the vendor's prefix) and numbers of GPUs."""

    uuids: frozenset[str] = frozenset()
    numbers: frozenset[int] = frozenset()

    def __or__(self, other: _Names) -> _Names:
        return _Names(self.uuids | other.uuids, self.numbers | other.numbers)

    def has(self, row: GpuRow) -> bool:
        """Whether this is the state of one of the GPUs."""
        return plain_uuid(row.get("uuid")) in self.uuids or row.get("index") in self.numbers


def _names(trace: Trace, provenance: Provenance) -> _Names | None:
    """Names of all GPUs that the trial used; None where those of one of them are not known."""
    rows = (*provenance.gpus.before, *provenance.gpus.after)
    known, selected = _Names(), _selected(rows, provenance)
    devices = used_devices(trace)
    for device in devices:
        name = _of_device(device, selected, rows, provenance) or selected
        if name is None:
            return None
        known |= name
    return known if devices else selected


def _of_device(
    device: DeviceRow, selected: _Names | None, rows: Sequence[GpuRow], provenance: Provenance
) -> _Names | None:
    """The name of a device by the trace alone; None where it says nothing, or nothing that can be."""
    uuid, number = plain_uuid(device["uuid"]), device["host_ordinal"]
    if uuid and any(row.get("uuid") for row in rows):
        found = _Names(uuids=frozenset({uuid}))
        mine = list(filter(found.has, rows))
        # Older versions of profrun guessed the uuid for some profilers, but never a number on the host.
        guessed = number is None and selected is not None and mine and not any(map(selected.has, mine))
        return None if guessed else found
    if number is not None and _counted_alike(rows, provenance):
        return _Names(numbers=frozenset({number}))
    return None


def _selected(rows: Sequence[GpuRow], provenance: Provenance) -> _Names | None:
    """The GPUs that the environment selects: the trial saw no others. None where it selects none by name."""
    numbers, uuids = set(), set()
    for name in visible_devices(provenance.environment, provenance.vendor):
        if name.isascii() and name.isdigit() and _counted_alike(rows, provenance):
            numbers.add(int(name))
        elif name.startswith("GPU-"):  # the first digits of a uuid are enough
            uuids |= {
                uuid for row in rows if (uuid := plain_uuid(row.get("uuid"))).startswith(plain_uuid(name))
            }
        else:
            return None
    return _Names(frozenset(uuids), frozenset(numbers)) if numbers or uuids else None


def _counted_alike(rows: Sequence[GpuRow], provenance: Provenance) -> bool:
    """Whether CUDA counts the GPUs as nvidia-smi does.

    It does where it was told to, and where all GPUs are of one kind; of several kinds the fastest is CUDA's
    first.
    """
    by_bus = provenance.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    return by_bus or len({row.get("name") for row in rows}) == 1
