"""Signs that two trials do the same work per step, for where nothing proves it.

``work_signs`` is given both trials. A sign is no proof: a program may read its batch size from a file. But
two trials of one script with the same arguments are what people compare.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from profrun.analysis.compare.compared_trial import ComparedTrial
from profrun.analysis.compare.kernel_identity import kernel_identity
from profrun.analysis.kernel_names import MATRIX_CATEGORIES
from profrun.contract.units import bytes_text, count_text, rate_text

EQUAL_BYTES = 0.001
"""Relative difference of copied bytes up to which they are equal."""
OTHER_COUNT = 1.5
"""Ratio of the numbers of matrix kernels from which they speak against the same work; below it, fused or
split kernels explain the difference."""
FEW_MATRIX_KERNELS = 5
"""Fewer matrix kernels per step tell nothing: as many on both sides may be chance, one more a split one."""
_OF_ONE_OP = frozenset({"norm", "softmax", "loss", "pooling", "fft"})
"""Categories of kernels of one op: a program that launches them as often does it for the same tensors."""
_OF_ANY_OP = frozenset({"elementwise", "reduction", "copy", "layout", "fill", "indexing", "random"})
"""Categories of kernels that any op may launch."""
SEVERAL = 3
"""Kernels of any op that must have other numbers of threads before this is evidence."""
_WRAPPERS = re.compile(r"^(?:_orig_mod|module)\.|\.(?:_orig_mod)(?=\.|$)")
"""What torch.compile and data-parallel wrappers add to names of modules."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class WorkSigns:
    """What speaks for and against the same work, in words.

    Attributes:
        other_sizes: most kernels that both launch as often have other numbers of threads: that is evidence.
        same_program: both trials ran one script with the same arguments, or are of one run's job.
    """

    speak_for: tuple[str, ...] = ()
    speak_against: tuple[str, ...] = ()
    other_sizes: bool = False
    same_program: bool = False


def work_signs(a: ComparedTrial, b: ComparedTrial) -> WorkSigns:
    """Everything that tells of the work without measuring it."""
    found: tuple[list[str], list[str]] = [], []
    same_program = _program(a, b, *found)
    _modules(a, b, *found)
    _bytes(a, b, *found)
    _matrix_kernels(a, b, *found)
    other_sizes = _sizes(a, b, *found)
    return WorkSigns(tuple(found[0]), tuple(found[1]), other_sizes, same_program)


def _program(a: ComparedTrial, b: ComparedTrial, speak_for: list[str], against: list[str]) -> bool:
    left, right = a.conditions, b.conditions
    one_job = bool(left.job) and left.job == right.job
    if one_job:
        speak_for.append("both are trials of one job")
    if not left.program or not right.program:
        return one_job
    if left.program[0] != right.program[0]:
        against.append(f"the programs are {left.program[0]} and {right.program[0]}")
        return one_job
    if left.program == right.program:
        speak_for.append(f"both ran {left.program[0]} with the same arguments")
    else:
        words = differing_arguments(left.program, right.program)
        speak_for.append(f"both ran {left.program[0]}, with other arguments ({words})")
    if left.steps_made and left.steps_made == right.steps_made:
        speak_for.append(f"both made {left.steps_made} steps")
    return one_job or left.program == right.program


def differing_arguments(a: tuple[str, ...], b: tuple[str, ...]) -> str:
    """The arguments that only one of two programs has, in words: ``a: --eager; b: --compile``."""
    sides = (("a", a, b), ("b", b, a))
    only = ((side, " ".join(word for word in mine[1:] if word not in other)) for side, mine, other in sides)
    return "; ".join(f"{side}: {words}" for side, words in only if words) or "in another order"


def _modules(a: ComparedTrial, b: ComparedTrial, speak_for: list[str], against: list[str]) -> None:
    left, right = modules_of(a), modules_of(b)
    if not left or not right:
        return
    if left == right:
        speak_for.append(f"their {len(left)} modules have the same names")
    elif not left & right:
        against.append(f"no module of one is a module of the other ({min(left)} and {min(right)}, say)")


def modules_of(trial: ComparedTrial) -> frozenset[str]:
    """Names of the modules that launched kernels, without what wrappers add; the root module has no name."""
    names = {group.module for group in trial.kernel_groups if group.module and group.module != "root"}
    return frozenset(_WRAPPERS.sub("", name) for name in names)


def _bytes(a: ComparedTrial, b: ComparedTrial, speak_for: list[str], against: list[str]) -> None:
    """A side without any such bytes tells nothing: its data may stay on the GPU."""
    per = a.conditions.denominator.rate
    for what, left, right in (
        ("copied to the GPU", a.work.uploaded_bytes, b.work.uploaded_bytes),
        ("exchanged between ranks", a.work.collective_bytes, b.work.collective_bytes),
    ):
        if not left or not right:
            continue
        if abs(right / left - 1) <= EQUAL_BYTES:
            speak_for.append(f"{bytes_text(left)} {per} are {what} on both sides")
        else:
            against.append(f"{bytes_text(left)} and {bytes_text(right)} {per} are {what}")


def _matrix_kernels(a: ComparedTrial, b: ComparedTrial, speak_for: list[str], against: list[str]) -> None:
    left, right = (matrix_launches(trial) for trial in (a, b))
    per = a.conditions.denominator.rate
    if not left or not right or max(left, right) < FEW_MATRIX_KERNELS:
        return
    if left == right:
        speak_for.append(f"both launch {rate_text(left)} matrix kernels {per}")
    elif max(left, right) / min(left, right) >= OTHER_COUNT:
        against.append(f"{rate_text(left)} and {rate_text(right)} matrix kernels are launched {per}")


def _sizes(a: ComparedTrial, b: ComparedTrial, speak_for: list[str], against: list[str]) -> bool:
    """Do the thread counts of kernels that both launch equally often prove different work?

    They do if kernels with other thread counts take most of the time. One kernel of a single op is enough. Of
    kernels of any op (an addition) several are needed: what a compiler leaves may be another addition.
    """
    left, right = thread_counts(a), thread_counts(b)
    shared = [key for key in left.keys() & right.keys() if left[key].calls == right[key].calls]
    if not shared:
        return False
    other = [key for key in shared if _ratio(left[key].threads, right[key].threads) >= OTHER_COUNT]
    if not other:
        kernels = f"{len(shared)} kernels" if len(shared) > 1 else "1 kernel"
        speak_for.append(f"{kernels} that both launch as often have about as many threads on both sides")
        return False
    first = max(other, key=lambda key: (left[key].category in _OF_ONE_OP, left[key].ns))
    threads = f"{count_text(left[first].threads)} and {count_text(right[first].threads)} threads"
    rate = a.conditions.denominator.rate
    against.append(f"{left[first].label} is launched as often on both sides, but with {threads} {rate}")
    telling = [key for key in shared if left[key].category in _OF_ONE_OP] or shared
    differ = set(other) & set(telling)
    if telling is shared and len(differ) < SEVERAL:
        return False
    return 2 * sum(left[key].ns for key in differ) > sum(left[key].ns for key in telling)


@dataclass(frozen=True)
class ThreadCount:
    """Launches of a kernel and the threads of all of them, per typical step, and its time over all steps."""

    label: str
    category: str
    calls: float
    threads: int
    ns: int


def thread_counts(trial: ComparedTrial) -> dict[str, ThreadCount]:
    """By kernel, for kernels whose threads grow with the work of a step.

    Matrix kernels, collectives and generated kernels choose their grids otherwise, and those of optimizers
    grow with the model.
    """
    samples = trial.typical_count
    calls: dict[str, int] = {}
    time: dict[str, int] = {}
    for group in trial.kernel_groups:
        if group.is_kernel_work and group.category in (*_OF_ONE_OP, *_OF_ANY_OP):
            calls[group.name] = calls.get(group.name, 0) + group.calls
            time[group.name] = time.get(group.name, 0) + group.ns
    found = {}
    for name, count in calls.items():
        facts = trial.facts.get(name)
        if facts is None or name.startswith("triton_") or sum(n for _, n in facts.shapes) != count:
            continue  # not all launches are known by their shape
        threads = sum(prod(map(int, _NUMBER.findall(shape))) * launches for shape, launches in facts.shapes)
        key = kernel_identity(name)
        found[key] = ThreadCount(
            facts.short, facts.category, count / samples, round(threads / samples), time[name]
        )
    return found


def _ratio(one: float, two: float) -> float:
    return max(one, two) / min(one, two) if min(one, two) > 0 else 1.0


def matrix_launches(trial: ComparedTrial) -> float:
    """Launches per typical step of kernels that multiply matrices, convolve or attend."""
    calls = sum(group.calls for group in trial.kernel_groups if group.category in MATRIX_CATEGORIES)
    return calls / trial.typical_count
