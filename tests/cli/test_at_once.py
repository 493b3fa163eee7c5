"""Ctrl-C while an engine works in this process."""

from __future__ import annotations

import signal

import pytest

from profrun.cli.at_once import ends_at_once


def _nothing() -> None:
    return


def _engine_that_looks_for_signals() -> None:
    """It meets Ctrl-C and says so in its own words."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted") from None


def test_an_error_that_an_engine_makes_of_ctrl_c_is_ctrl_c() -> None:
    """The engine may look for signals itself, and raise before the thread that listens has heard of one."""
    for _ in range(200):
        with pytest.raises(KeyboardInterrupt), ends_at_once(_nothing, _nothing):
            _engine_that_looks_for_signals()


def test_an_error_without_ctrl_c_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="no such table"), ends_at_once(_nothing, _nothing):
        raise RuntimeError("no such table")


def test_ctrl_c_is_handled_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ends_at_once(_nothing, _nothing):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_what_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    """A shell starts what runs in the background in this way."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ends_at_once(_nothing, _nothing):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
