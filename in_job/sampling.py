"""The wrapper's side of the sampler: starts it before the program and ends it after the program."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from ..contract.codec import DocumentError, from_json
from ..contract.finding import Finding
from ..contract.visible_devices import VISIBLE_DEVICES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..contract.recording import Rank

READY_S = 3.0
"""So long the start of the program waits for the sampler; meanwhile nvidia-smi has woken the GPUs."""
END_S = 2.0  # for its last sample


def sampler_argv(python: str, bundle: Path, folder: Path, rate: float, vendor: str, own: Rank) -> list[str]:
    """How the sampler is started: nothing of the program's Python, its site and its variables is loaded.

    Args:
        python: that runs the wrapper.
        bundle: where sampler.py lies.
        folder: of the trial.
        rate: samples per second.
        vendor: of the GPUs.
        own: the rank of the wrapper. Where there are several wrappers, each may see other GPUs.
    """
    argv = [python, "-I", "-S", "-B", str(bundle / "sampler.py"), str(folder)]
    argv += ["--rate", f"{rate:g}", "--vendor", vendor]
    return [*argv, "--all"] if own.world_size > 1 else argv


def sampler_env(base: Mapping[str, str], program: Mapping[str, str]) -> dict[str, str]:
    """The sampler's environment: the wrapper's, with the program's selection of GPUs.

    Args:
        base: of the wrapper. program: of the program.
    """
    chosen = {name for names in VISIBLE_DEVICES.values() for name in names}
    env = {name: value for name, value in base.items() if name not in chosen}
    return env | {name: value for name, value in program.items() if name in chosen}


class Sampling:
    """A sampler that runs. Its standard input is a pipe: it ends when the wrapper closes it, or is gone."""

    def __init__(self, argv: list[str], env: Mapping[str, str]) -> None:
        """Start it.

        Raises:
            OSError: it cannot be started.
        """
        self._process = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._deadline = time.monotonic() + READY_S

    @property
    def pid(self) -> int:
        """Of the sampler."""
        return self._process.pid

    def wait_until_ready(self) -> list[Finding]:
        """Until it samples, at most ``READY_S`` seconds after its start; what it says of what is not read."""
        out = self._process.stdout
        assert out is not None
        left = max(0.0, self._deadline - time.monotonic())
        if not select.select([out], [], [], left)[0]:
            what = "the program was started before the sampler was ready"
            return [Finding("sampler-late", "info", what, f"it was not within {READY_S:g} s")]
        return _findings(os.read(out.fileno(), 65536))

    def end(self) -> None:
        """End it: it reads a last time first."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:  # it hangs in the driver
            process.kill()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                return


def _findings(text: bytes) -> list[Finding]:
    try:
        return [from_json(Finding, row) for row in json.loads(text)]
    except (ValueError, DocumentError):
        why = "the sampler ended before it could say why"
        return [Finding("sampler-failed", "info", "nothing is sampled", why)]


def start(
    rate: float, bundle: Path, folder: Path, vendor: str, own: Rank, env: Mapping[str, str]
) -> Sampling | None:
    """Start the sampler of this host, by the wrapper of the host's first rank only; None: there is none.

    Args:
        rate: samples per second; 0: none.
        bundle, folder, vendor, own: as of ``sampler_argv``.
        env: of the program.
    """
    if rate <= 0 or own.local_rank:
        return None
    try:
        return Sampling(
            sampler_argv(sys.executable, bundle, folder, rate, vendor, own), sampler_env(os.environ, env)
        )
    except OSError:
        return None
