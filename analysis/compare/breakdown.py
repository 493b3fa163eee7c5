"""The same difference cut along other lines: op, range, module, category, step; and the parts of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profrun.analysis.compare.align import base, ops_of, ranges_of
from profrun.analysis.compare.model import Part, Row
from profrun.analysis.compare.rows import MATTERS, MOST_ESTIMATES, status, with_interval
from profrun.analysis.compare.trial import Atom, HostOp, Trial

Sides = tuple[Sequence[Trial], Sequence[Trial]]


def unit_counts(sides: Sides) -> tuple[int, int]:
    """Typical units of each side, at least 1."""
    a, b = (max(1, sum(len(trial.typical) for trial in side)) for side in sides)
    return a, b


def merged_atoms(trials: Sequence[Trial]) -> list[Atom]:
    """Atoms of several trials of a side, summed."""
    from dataclasses import replace

    found: dict[tuple[object, ...], Atom] = {}
    for trial in trials:
        for atom in trial.atoms:
            key = (atom.name, atom.role, atom.path, atom.module, atom.backward)
            old = found.get(key)
            found[key] = replace(atom, calls=old.calls + atom.calls, ns=old.ns + atom.ns) if old else atom
    return list(found.values())


def merged_host(trials: Sequence[Trial]) -> list[HostOp]:
    """Host rows of several trials of a side, summed."""
    from dataclasses import replace

    found: dict[tuple[str, str], HostOp] = {}
    for trial in trials:
        for row in trial.host:
            old = found.get((row.name, row.kind))
            found[(row.name, row.kind)] = row if old is None else replace(
                row, calls=old.calls + row.calls, cpu_ns=old.cpu_ns + row.cpu_ns,
                self_cpu_ns=old.self_cpu_ns + row.self_cpu_ns, device_ns=old.device_ns + row.device_ns,
                self_device_ns=old.self_device_ns + row.self_device_ns, main_ns=old.main_ns + row.main_ns,
                launches=old.launches + row.launches,
            )  # fmt: skip
    return list(found.values())


def view(
    by: str, sides: Sides, atoms: tuple[Sequence[Atom], Sequence[Atom]], *, threshold: float,
    per: tuple[float, float],
) -> tuple[Row, ...]:  # fmt: skip
    """Rows of one view; on CPU time where neither side has GPU work."""
    if by == "step":
        return step_rows(sides, threshold, per)
    if any(
        not trial.atoms and not any(row.main_ns for row in trial.host) for side in sides for trial in side
    ):
        return ()  # a side has nothing but step times
    if not atoms[0] and not atoms[1]:
        return cpu_rows(sides, by, threshold, per)
    keys: tuple[Callable[[Atom], tuple[str, str]], Callable[[Atom], tuple[str, str]]]
    if by == "op":
        keys = _op_keys(atoms)
    elif by == "range":
        keys = _chain_keys(atoms, lambda atom: list(reversed(ranges_of(atom))), "(outside of ranges)")
    elif by == "module":
        keys = (_module, _module)
    else:
        keys = (_category, _category)
    return _rows(sides, atoms, keys, threshold, per)


def _module(atom: Atom) -> tuple[str, str]:
    name = atom.module or "(no module)"
    return (f"{name}, backward" if atom.backward and atom.module else name), "module"


def _category(atom: Atom) -> tuple[str, str]:
    return atom.category, "category"


def _op_keys(
    atoms: tuple[Sequence[Atom], Sequence[Atom]],
) -> tuple[Callable[[Atom], tuple[str, str]], Callable[[Atom], tuple[str, str]]]:
    """The innermost op that both sides have, else the innermost range that both have, else the category."""

    def chain(atom: Atom) -> list[str]:
        return [*ops_of(atom), *reversed(ranges_of(atom))]

    return _chain_keys(atoms, chain, None)


def _chain_keys(
    atoms: tuple[Sequence[Atom], Sequence[Atom]], chain: Callable[[Atom], list[str]], root: str | None
) -> tuple[Callable[[Atom], tuple[str, str]], Callable[[Atom], tuple[str, str]]]:
    known = [{name for atom in side for name in chain(atom)} for side in atoms]
    shared = known[0] & known[1]

    def key(atom: Atom) -> tuple[str, str]:
        found = chain(atom)
        for place, name in enumerate(found):
            if name in shared:
                return name, "op" if place == 0 else "ancestor"
        if root is not None and not found:
            return root, "op"
        if root is not None:
            return found[0], "only"
        return f"({atom.category})", "category"

    return key, key


def _rows(
    sides: Sides,
    atoms: tuple[Sequence[Atom], Sequence[Atom]],
    keys: tuple[Callable[[Atom], tuple[str, str]], Callable[[Atom], tuple[str, str]]],
    threshold: float,
    per: tuple[float, float],
) -> tuple[Row, ...]:
    units = unit_counts(sides)
    sums: dict[str, list[float]] = {}
    by: dict[str, set[str]] = {}
    names: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    category: dict[str, dict[str, int]] = {}
    for side in (0, 1):
        for atom in atoms[side]:
            name, via = keys[side](atom)
            row = sums.setdefault(name, [0.0, 0.0, 0.0, 0.0])
            row[side] += atom.ns / units[side] / per[side]
            row[2 + side] += atom.calls / units[side]
            by.setdefault(name, set()).add(via)
            mine = names.setdefault(name, ({}, {}))[side]
            mine[atom.name] = mine.get(atom.name, 0) + atom.ns
            weights = category.setdefault(name, {})
            weights[atom.category] = weights.get(atom.category, 0) + atom.ns
    rows = []
    matters = MATTERS * sum(row[0] for row in sums.values())
    for name, (a_ns, b_ns, a_calls, b_calls) in sums.items():
        kernels = tuple(tuple(sorted(side, key=lambda one: -side[one])) for side in names[name])
        order = ("category", "ancestor", "only", "op", "module")
        how: str | None = next((one for one in order if one in by[name]), None)
        rows.append(
            Row(
                name=name, category=max(category[name], key=lambda one: category[name][one]),
                status=_status(a_ns, b_ns, threshold, matters), a_ns=a_ns, b_ns=b_ns, delta_ns=b_ns - a_ns,
                a_calls=a_calls, b_calls=b_calls, ratio=b_ns / a_ns if a_ns and b_ns else None,
                by=how if a_ns and b_ns else None, a_names=kernels[0], b_names=kernels[1], label=base(name),
            )
        )  # fmt: skip
    rows.sort(key=lambda row: -max(row.a_ns, row.b_ns))
    rows = [
        with_interval(row, sides, threshold, per, matters) if place < MOST_ESTIMATES else row
        for place, row in enumerate(rows)
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.delta_ns), -row.b_ns, row.name)))


def _status(a_ns: float, b_ns: float, threshold: float, matters: float = 0.0) -> str:
    if not a_ns or not b_ns:
        return "added" if not a_ns else "removed"
    return status(a_ns, b_ns, None, threshold, matters)


def cpu_rows(sides: Sides, by: str, threshold: float, per: tuple[float, float]) -> tuple[Row, ...]:
    """Self CPU time on the steps' thread by name: what a step without a GPU is made of.

    ``by`` 'range' and 'module' keep ranges only, the rest being on their account is not known here.
    """
    units = unit_counts(sides)
    sums: dict[str, list[float]] = {}
    for side, trials in enumerate(sides):
        for row in merged_host(trials):
            name = "(ops)" if by in ("range", "module") and row.kind not in ("range", "step") else row.name
            values = sums.setdefault(name, [0.0, 0.0, 0.0, 0.0])
            values[side] += row.main_ns / units[side] / per[side]
            values[2 + side] += row.calls / units[side]
    return tuple(
        sorted(
            (
                Row(
                    name=name, category=None, status=_status(a, b, threshold), a_ns=a, b_ns=b,
                    delta_ns=b - a, a_calls=a_calls, b_calls=b_calls, ratio=b / a if a and b else None,
                    by="name" if a and b else None, basis="cpu", label=base(name),
                )
                for name, (a, b, a_calls, b_calls) in sums.items()
                if a or b
            ),
            key=lambda row: (-abs(row.delta_ns), row.name),
        )
    )  # fmt: skip


def step_rows(sides: Sides, threshold: float, per: tuple[float, float]) -> tuple[Row, ...]:
    """Steps by their place in the recording, mean over trials; no sum over these rows means anything."""
    tables = [_places(trials) for trials in sides]
    rows = []
    for place in range(max((len(table) for table in tables), default=0)):
        values = [
            table[place] / divisor if place < len(table) else 0.0
            for table, divisor in zip(tables, per, strict=True)
        ]
        name = f"step {place + 1} of the recording"
        rows.append(
            Row(
                name=name, category=None, status=_status(values[0], values[1], threshold),
                a_ns=values[0], b_ns=values[1],
                delta_ns=values[1] - values[0], a_calls=float(values[0] > 0), b_calls=float(values[1] > 0),
                ratio=values[1] / values[0] if all(values) else None, basis="step", label=name,
            )
        )  # fmt: skip
    return tuple(rows)


def _places(trials: Sequence[Trial]) -> list[float]:
    columns = [trial.times for trial in trials]
    longest = max((len(times) for times in columns), default=0)
    found = []
    for place in range(longest):
        values = [times[place] for times in columns if place < len(times)]
        found.append(sum(values) / len(values))
    return found


def typical_step(trials: Sequence[Trial]) -> float:
    """Mean time of the typical units of all trials, of several ranks the mean of the ranks' times."""
    units = [unit for trial in trials for unit in trial.typical]
    return sum(unit.time_ns for unit in units) / len(units) if units else 0.0


def parts(sides: Sides, per: tuple[float, float]) -> tuple[Part, ...]:
    """What the mean typical step is made of; the parts add up to it on each side.

    gpu: sum of the GPU work that it launched; concurrent: the part of that sum that ran at the same time as
    other work of the step (negative); no own GPU work: the rest, in which nothing that this step launched
    ran. Without a GPU: host, and what of the step the host range does not cover.
    """
    measures = {trial.conditions.measure for side in sides for trial in side}
    if not measures & {"span", "recording"}:
        return _simple_parts(sides, per, measures)
    values: dict[str, list[float]] = {"gpu": [], "concurrent": [], "no own GPU work": []}
    for trials, divisor in zip(sides, per, strict=True):
        units = [unit for trial in trials for unit in trial.typical]
        count = max(1, len(units)) * divisor
        gpu, busy = sum(unit.gpu_ns for unit in units), sum(unit.busy_ns for unit in units)
        time = sum(unit.time_ns for unit in units)
        values["gpu"].append(gpu / count)
        values["concurrent"].append((busy - gpu) / count)
        values["no own GPU work"].append((time - busy) / count)
    return tuple(Part(name, a, b, b - a) for name, (a, b) in values.items())


def _simple_parts(sides: Sides, per: tuple[float, float], measures: set[str]) -> tuple[Part, ...]:
    name = "host" if measures == {"host"} else "step"
    a, b = (typical_step(trials) / divisor for trials, divisor in zip(sides, per, strict=True))
    return (Part(name, a, b, b - a),)


def aligned_share(rows: Sequence[Row]) -> tuple[float | None, float | None]:
    """Of each side's time, the share in rows that have both sides."""
    found: list[float | None] = []
    for side in ("a_ns", "b_ns"):
        total = sum(getattr(row, side) for row in rows)
        both = sum(getattr(row, side) for row in rows if row.a_ns and row.b_ns)
        found.append(both / total if total else None)
    return found[0], found[1]
