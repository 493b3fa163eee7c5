"""The checks of claims in words, from their values: ``expected_text``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from profrun.contract.codec import given_json
from profrun.contract.denominator import STEP, Denominator
from profrun.contract.units import bytes_text
from profrun.jobs.expectation import Achieved, DramBytes, Limits, Ratio, SameKernels

_QUANTITIES = {
    "energy": "energy",
    "cpu_time": "host time",
    "kernel_time": "kernel time",
    "gpu_busy": "time with GPU work",
    "launches": "launches",
}
_SHARES = {
    "utilization": "utilization",
    "sm_efficiency": "SM efficiency",
    "occupancy": "occupancy",
    "memory": "share of the memory's peak",
    "compute": "share of the arithmetic peak",
}


def expected_text(key: str, value: Any, of: Denominator = STEP) -> str:
    """A check in words.

    Args:
        key: as the job writes it. value: as ``jobs.expectation.Expectation.checks`` holds it.
        of: what counts and times are of in the traces that were asked.
    """
    return _WORDS[key](value, of)


def limits_text(limits: Limits, number: Callable[[float], str] = "{:g}".format) -> str:
    """'at most 2', 'at least 1', '1 to 2', '3'."""
    low, high = limits
    if low is None or high is None:
        return f"at most {number(high)}" if high is not None else f"at least {number(low or 0.0)}"
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _kernels(limits: tuple[int, int], of: Denominator) -> str:
    return f"{limits_text(limits)} kernels {of.rate}"


def _counts(limits: Mapping[str, tuple[int, int]], of: Denominator) -> str:
    return ", ".join(f"{limits_text(span)} {name}" for name, span in limits.items()) + f" {of.rate}"


def _after(wanted: Mapping[str, str], _of: Denominator) -> str:
    return ", ".join(f"{before} right before {kernel}" for kernel, before in wanted.items())


def _same(value: SameKernels, _of: Denominator) -> str:
    return f"the same {', '.join(value.only) if value.only else ''} kernels as {value.as_}".replace("  ", " ")


def _shares(limits: Mapping[str, float], _of: Denominator) -> str:
    return ", ".join(f"{name} at most {100 * share:g} % of GPU time" for name, share in limits.items())


def _ratio(value: Ratio, of: Denominator) -> str:
    per = f" per {value.per}" if value.per else ""
    what = of.time if value.of == "step_time" else _QUANTITIES[value.of]
    return f"{what}{per} {limits_text(value.limits)} times that of {value.to}"


def _bytes(value: DramBytes, of: Denominator) -> str:
    if value.to is None:
        return f"{limits_text(value.limits, bytes_text)} through the GPU's memory {of.rate}"
    return f"bytes through the GPU's memory {limits_text(value.limits)} times those of {value.to}"


def _achieved(value: Achieved, _of: Denominator) -> str:
    return ", ".join(
        f"{_SHARES[key]} {100 * low:g} to {100 * high:g} %" for key, (low, high) in given_json(value).items()
    )


_WORDS: Mapping[str, Callable[[Any, Denominator], str]] = {
    "kernels_per_step": _kernels,
    "counts": _counts,
    "present": lambda globs, of: f"{', '.join(globs)} present in {'every step' if of.several else of.the}",
    "absent": lambda globs, of: f"no {', '.join(globs)}",
    "after": _after,
    "fused": lambda globs, of: f"{', '.join(globs)} not as kernels of their own",
    "same_kernels": _same,
    "dtype": lambda wanted, of: f"matrix kernels in {wanted}",
    "max_share": _shares,
    "no_sync_in_step": lambda wanted, of: f"no waiting for the GPU inside of {of.one}",
    "step_ms": lambda limit, of: f"{'median step' if of.several else of.time} below {limit} ms",
    "bound": lambda wanted, of: f"bound by {wanted}",
    "ratio": _ratio,
    "bytes": _bytes,
    "achieved": _achieved,
    "finds": lambda rules, of: f"the diagnosis finds {', '.join(rules)}",
    "finds_not": lambda rules, of: f"the diagnosis does not find {', '.join(rules)}",
}
