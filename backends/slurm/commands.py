"""The only module that starts Slurm's commands; it turns their errors into ``profrun.errors``."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Literal

from profrun.errors import ProfrunError, UnavailableError, UsageError

_TIMEOUT_S = 60.0
_UNREACHABLE = re.compile(
    r"unable to contact slurm controller|connection refused|socket timed out|zero bytes were transmitted"
    r"|slurm_receive|communication connection failure|backup controller",
    re.IGNORECASE,
)
_OURS = re.compile(
    r"invalid partition|invalid account|invalid qos|invalid feature|invalid job array|unrecognized option"
    r"|invalid generic resource|invalid license|invalid node name|invalid trackable",
    re.IGNORECASE,
)


Code = Literal["no-command", "unreachable", "no-accounting", "unknown-job", "refused"]


class SlurmError(UnavailableError):
    """One of Slurm's commands could not do what was asked.

    Attributes:
        code: what programs decide by: the command or the accounting database is not there, the controller
            does not answer, it does not know the job (any more), or another reason.
    """

    def __init__(self, code: Code, what: str, *, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what, why=why, fix=fix)
        self.code = code


class Slurm:
    """Runs Slurm's commands.

    Args:
        env: variables to set over this process's own (``SLURM_CONF``).
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._env = dict(env or {})

    def run(
        self, argv: Sequence[str], *, text: str | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        """Standard output of one command.

        Args:
            text: standard input.
            env: more variables, e.g. a job's secrets: they travel in the environment only.

        Raises:
            SlurmError: there is no such command, or the controller does not answer.
            UsageError: the request is wrong (partition, account, option).
        """
        try:
            done = subprocess.run(
                list(argv),
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                env={**os.environ, **self._env, **(env or {})},
                check=False,
            )
        except FileNotFoundError:
            raise SlurmError(
                "no-command",
                f"there is no {argv[0]} here",
                why="Slurm's commands are not installed on this machine or not on the PATH",
                fix="submit from a login node",
            ) from None
        except subprocess.TimeoutExpired:
            raise SlurmError(
                "unreachable",
                f"{argv[0]} did not answer in {_TIMEOUT_S:.0f} s",
                why="the Slurm controller is busy or down",
            ) from None
        if done.returncode == 0:
            return done.stdout
        raise explained(argv[0], done.stderr or done.stdout)


def explained(tool: str, stderr: str) -> ProfrunError:
    """The error that a command's last lines mean."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = " ".join(re.sub(r"^\w+: (error: )?", "", line) for line in lines[-2:]) or "it said nothing"
    if _UNREACHABLE.search(stderr):
        return SlurmError("unreachable", "the Slurm controller cannot be reached", why=said)
    if _OURS.search(stderr):
        return UsageError(
            f"{tool} refused the job", why=said, fix="check the job's cluster block and profile"
        )
    code: Code = "refused"
    if "Invalid job id" in stderr:
        code = "unknown-job"
    elif "accounting storage is disabled" in stderr:
        code = "no-accounting"
    return SlurmError(code, f"{tool} refused", why=said, fix="`sinfo` shows what the cluster has")
