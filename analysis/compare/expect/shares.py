"""Claims about what the GPU achieved: utilization, occupancy, shares of its peaks, bytes through its memory.

Counters are those of a profiler that replays each kernel alone, with empty caches unless the job says
otherwise.
"""

from __future__ import annotations

from profrun.analysis.compare.expect.evidence import Evidence
from profrun.analysis.compare.expect.model import Answer, untold, within
from profrun.analysis.trace.data_quality import data_quality, withheld
from profrun.analysis.trace.frame import frame
from profrun.analysis.trace.gpu import devices
from profrun.analysis.trace.roofline import device_peaks, roofline
from profrun.contract.codec import given_json
from profrun.contract.denominator import Denominator
from profrun.contract.units import bytes_text, percent_text
from profrun.jobs.expectation import Achieved

DRAM_BYTES = "dram__bytes.sum"
ACTIVE_WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
"""Counter of the warps that are active on an SM, in percent of those that fit, while the SM works."""
_ASK_FOR_BYTES = "collect `counters` with the metric dram__bytes.sum; docs/job-spec.md shows how"
_ASK_FOR_WARPS = f"collect `counters` with the metrics {ACTIVE_WARPS} and gpu__time_duration.sum"
_KNOWN = 0.9
"""Share of the kernels' time of which a number must be known before it is told of all."""
_OF_DEVICE = {
    "utilization": ("utilization", "utilization of the recorded window"),
    "sm_efficiency": ("est_sm_efficiency", "estimated SM efficiency of the recorded window"),
    "occupancy": ("est_achieved_occupancy", "estimated occupancy"),
}
"""Key -> (field of ``trace.gpu.DeviceMetrics``, in words)."""


def achieved(evidence: Evidence, wanted: Achieved) -> Answer:
    """Does each share lie inside its limits, on every GPU?"""
    answers = [_one(evidence, key, limits) for key, limits in given_json(wanted).items()]
    for passed in (False, None):
        first = next((one for one in answers if one.passed is passed), None)
        if first is not None:
            return first
    if len(answers) == 1:
        return answers[0]
    words = ", ".join(one.found for one in answers)
    return Answer(True, words, measured=any(one.measured for one in answers))


def _one(evidence: Evidence, key: str, limits: tuple[float, float]) -> Answer:
    if key == "memory":
        return _of_peak(*_memory_share(evidence), limits)
    if key == "compute":
        return _of_peak(*_compute_share(evidence), limits)
    if key == "occupancy" and evidence.trial.conditions.replayed:
        return _counted_occupancy(evidence, limits)
    field, words = _OF_DEVICE[key]
    if f"devices.{field}" in withheld(data_quality(evidence.trace)):
        return untold(f"devices.{field} cannot be trusted in this trace; see `profrun summary`")
    values = [value for one in devices(evidence.trace) if (value := getattr(one, field)) is not None]
    if not values:
        return untold(f"the trace does not tell the {words}")
    text = " and ".join(percent_text(value) for value in values)
    right = all(within(value, limits) for value in values)
    return Answer(right, f"{words} {text}", values[0] if len(values) == 1 else None, unit="share")


def _counted_occupancy(evidence: Evidence, limits: tuple[float, float]) -> Answer:
    """The occupancy by the counter of a profiler that replays kernels, weighted by the kernels' time.

    Without the counter it says nothing: an estimate there has the times of replayed kernels as its weights,
    which are not those of the program.
    """
    counted, time, whole = evidence.trace.sql(
        "SELECT sum(m.value * s.dur_ns), sum(s.dur_ns) FILTER (m.value IS NOT NULL), sum(s.dur_ns) "
        "FROM slices s LEFT JOIN metrics m ON m.slice = s.slice AND m.name = ? WHERE s.kind = 'kernel'",
        [ACTIVE_WARPS],
    ).rows[0]
    if not time or time < _KNOWN * whole:
        if evidence.trial.conditions.vendor != "nvidia":
            return untold("kernels were replayed, so that their times are no weights of an occupancy")
        return untold(f"kernels were replayed without the counter {ACTIVE_WARPS}", _ASK_FOR_WARPS)
    value = float(counted) / float(time) / 100
    text = f"measured occupancy {percent_text(value)} ({ACTIVE_WARPS})"
    return Answer(within(value, limits), text, value, unit="share", measured=True)


def _of_peak(share: float | None, text: str, limits: tuple[float, float]) -> Answer:
    """The answer about a share of a peak; ``text`` says of what it is, or why it is not known."""
    if share is None:
        return untold(text)
    return Answer(within(share, limits), f"{percent_text(share)} {text}", share, unit="share")


def _memory_share(evidence: Evidence) -> tuple[float | None, str]:
    """Bytes per kernel time over the peak of the memory: by counters, else by the shapes of ops."""
    source = frame(evidence.trace)
    peaks = [one for one in device_peaks(source).values() if one is not None]
    if not peaks:
        return None, "the peak of this GPU's memory is not known"
    peak = peaks[0].memory_gb_s
    counted = _counted_bytes(evidence)
    if counted is not None:
        amount, time = counted
        if not time:
            return None, "the counters hold no times: collect gpu__time_duration.sum beside it"
        return amount / time / peak, f"of the memory's peak ({peak:g} GB/s), by {DRAM_BYTES}"
    table = roofline(evidence.trace)
    rows = [row for row in table.rows if row.bytes is not None and not row.cached]
    time = sum(row.gpu_ns for row in rows)
    if not time or time < _KNOWN * table.total_ns:
        known = percent_text(time / table.total_ns) if table.total_ns else "none"
        return None, f"recorded shapes tell the bytes of {known} of the GPU time; {_ASK_FOR_BYTES}"
    amount = sum((row.bytes or 0) * row.calls for row in rows)
    return amount / time / peak, f"of the memory's peak ({peak:g} GB/s), each input and output once"


def _compute_share(evidence: Evidence) -> tuple[float | None, str]:
    """FLOP/s of the matrix ops over the peak of their types, weighted by their time."""
    rates = [one for one in evidence.trial.rates if one.share is not None]
    time = sum(one.gpu_ns for one in rates)
    if not time:
        return None, "no matrix op with recorded shapes on a GPU whose peak is known"
    share = sum((one.share or 0.0) * one.gpu_ns for one in rates) / time
    types = ", ".join(dict.fromkeys(one.dtype for one in rates if one.dtype))
    return share, f"of the {types} peak, in matrix ops"


def _counted_bytes(evidence: Evidence) -> tuple[float, int] | None:
    """(bytes, ns) of all kernels with counted bytes; None where nothing counted them."""
    row = evidence.trace.sql(
        "SELECT sum(m.value), sum(s.dur_ns), count(*) FROM metrics m JOIN slices s USING (slice) "
        "WHERE m.name = ? AND s.kind = 'kernel'",
        [DRAM_BYTES],
    ).rows[0]
    return (float(row[0]), int(row[1])) if row[2] else None


def dram_bytes(evidence: Evidence) -> Answer:
    """Bytes through the GPU's memory, as ``Answer.value``; nothing is claimed of them."""
    counted = _counted_bytes(evidence)
    if counted is None:
        if not evidence.trial.conditions.replayed:
            return untold("no trial with hardware counters", _ASK_FOR_BYTES)
        return untold(f"no counter {DRAM_BYTES} was recorded", _ASK_FOR_BYTES)
    steps = len(evidence.trial.samples) if _has_steps(evidence) else evidence.steps
    if not steps:
        return untold("it is not known how many steps these counters are of")
    value = counted[0] / steps
    return Answer(True, f"{bytes_text(value)} {dram_of(evidence).rate}", value, unit="byte")


def dram_of(evidence: Evidence) -> Denominator:
    """What the bytes of ``dram_bytes`` are of."""
    is_cut = bool((evidence.trace.meta.get("job") or {}).get("cut"))
    return evidence.of if _has_steps(evidence) or is_cut else evidence.steps_of


def _has_steps(evidence: Evidence) -> bool:
    """Does the trace itself hold steps? That of a profiler of hardware counters does not."""
    return evidence.trial.conditions.measure != "recording"
