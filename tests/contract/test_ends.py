"""Ends in words: no sentence has the name of a signal, whatever the signal."""

from __future__ import annotations

import importlib
import re
import signal
import sys
from typing import get_args

import pytest

from profrun.contract.ends import MemoryKill, asked_text, died_text, stopped_text


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGKILL, "was killed: by `kill -9`, by a batch system, or by the kernel for want of memory"),
        (signal.SIGSEGV, "crashed with a segmentation fault"),
        (signal.SIGBUS, "/dev/shm"),
        (signal.SIGTERM, "was ended by another program"),
        (signal.SIGUSR1, f"was ended by signal {int(signal.SIGUSR1)}"),
        (signal.SIGRTMIN + 3, f"was ended by signal {signal.SIGRTMIN + 3}"),
    ],
)
def test_what_a_program_died_of(number: int, said: str) -> None:
    assert said in died_text(number)


@pytest.mark.parametrize("memory", get_args(MemoryKill))
def test_want_of_memory_is_said_only_where_the_kernel_counted_it(memory: MemoryKill) -> None:
    said = died_text(signal.SIGKILL, memory)
    assert ("ran out of memory" in said) == (memory in ("group", "machine"))
    assert ("`kill -9`" in said) == (memory in ("none", "unknown"))
    assert died_text(signal.SIGSEGV, memory) == died_text(signal.SIGSEGV)


def test_the_numbers_are_those_of_linux_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIGKILL", "SIGBUS", "SIGHUP", "SIGPIPE"):  # Windows has none of them
        monkeypatch.delattr(signal, name)
    monkeypatch.delitem(sys.modules, "profrun.contract.ends")
    ends = importlib.import_module("profrun.contract.ends")
    assert "ran out of memory" in ends.died_text(9, "group")


@pytest.mark.parametrize("number", sorted(signal.valid_signals()))
def test_no_name_of_a_signal_reaches_a_person(number: int) -> None:
    name = signal.Signals(number).name if number in list(signal.Signals) else "none"
    said = [died_text(number), asked_text(name), stopped_text(name, None), stopped_text(name, "Slurm")]
    assert not [text for text in said if re.search(r"\bSIG[A-Z]", text)]


def test_who_asked_and_who_ended() -> None:
    assert asked_text("SIGINT") == asked_text("profrun cancel") == "You cancelled it"
    assert asked_text("SIGHUP") == "The terminal was closed"
    assert stopped_text("SIGURG", "Slurm") == "Slurm announced the end of the job's time"
    assert stopped_text("SIGTERM", "Slurm").startswith("Slurm ended the job")
    assert stopped_text("SIGTERM", None).startswith("another program ended the trial")
