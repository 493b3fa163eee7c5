"""A seed always gives the same fault, and every fault can be injected."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.real.faults.plan import LONGEST_S, PHASES, SHAPES, Backend, Blow, Fault, plan

MANY = range(2000)
ALL: tuple[Backend, ...] = ("local", "docker", "slurm")


def test_a_seed_gives_this_fault() -> None:
    assert plan(1) == Fault(
        seed=1,
        shape="ranks",
        victim="wrapper",
        phase="recording",
        trial=1,
        blows=(
            Blow("STOP", 0.068),
            Blow("KILL", 0.15),
            Blow("CONT", 0.044),
            Blow("CONT", 0.144),
            Blow("KILL", 0.117),
            Blow("CONT", 0.042),
        ),
        pick=0.7846,
        asks=False,
    )


@pytest.mark.parametrize("backends", [("local",), ALL])
def test_every_fault_has_a_victim_that_lives_in_its_phase(backends: tuple[Backend, ...]) -> None:
    for fault in (plan(seed, backends) for seed in MANY):
        shape = SHAPES[fault.shape]
        assert shape.backend in backends
        assert fault.trial < shape.trials
        assert 0 <= fault.blows[0].after_s <= LONGEST_S[fault.phase]
        by_itself = fault.blows[0].act in ("EIO", "ENOSPC")
        if fault.victim not in ("folder", "clock") and not by_itself:
            assert fault.phase in shape.victims[fault.victim]


def test_no_process_is_left_stopped() -> None:
    for fault in (plan(seed, ALL) for seed in MANY):
        acts = [blow.act for blow in fault.blows]
        if "STOP" in acts:
            assert acts[::-1].index("CONT") < acts[::-1].index("STOP")


def test_every_act_phase_and_part_is_drawn() -> None:
    faults = [plan(seed, ALL) for seed in MANY]
    assert {fault.phase for fault in faults} == set(PHASES)
    assert {fault.shape for fault in faults} == SHAPES.keys()
    drawn = Counter((fault.shape, fault.victim) for fault in faults)
    expected = {(name, victim) for name, shape in SHAPES.items() for victim in shape.victims}
    assert expected <= drawn.keys()
