"""Wishes to end: signals are counted, handlers come back."""

from __future__ import annotations

import os
import signal
from types import FrameType

import pytest

from profrun.runner.interrupt import Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_wishes_and_handlers_come_back(number: signal.Signals) -> None:
    def before(_number: int, _frame: FrameType | None) -> None:
        """Stands for whatever was there; under `nohup` that would be SIG_IGN."""

    found = signal.signal(number, before)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), number)
            interrupts.wait(5.0)
            assert (interrupts.count, interrupts.reason) == (1, number.name)
        assert signal.getsignal(number) is before
    finally:
        signal.signal(number, found)


def test_an_ignored_signal_stays_ignored() -> None:
    """`nohup profrun submit ...` outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
        assert interrupts.count == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_breaks_off_what_can_be_redone() -> None:
    with Interrupts() as interrupts:
        interrupts.press("SIGINT")
        with pytest.raises(KeyboardInterrupt), interrupts.abortable():
            signal.raise_signal(signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # outside nothing is raised
        interrupts.wait(5.0)
    assert interrupts.count == 3
