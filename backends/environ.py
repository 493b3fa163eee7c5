"""The part of a trial's environment that is never written down: ``secrets`` and ``env_file`` of the job.

It is taken from the caller when trials start, on whatever backend, and is in no file of the run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from profrun.contract.profilers import candidates
from profrun.errors import UsageError
from profrun.in_job.withheld import withheld_fix, withheld_names, withheld_text
from profrun.jobs.model import Job


def secret_env(job: Job, cwd: Path, caller: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables of ``env_file`` (relative to ``cwd``), then ``secrets`` of the caller over them.

    Args:
        cwd: the folder that the job's relative paths count from.
        caller: the caller's environment, default this process's.

    Raises:
        UsageError: a secret is not set, or the file cannot be read or is no ``NAME=value`` file.
    """
    around = os.environ if caller is None else caller
    found = _file_env(cwd / job.env_file) if job.env_file else {}
    missing = [name for name in job.secrets if name not in around and name not in found]
    if missing:
        raise UsageError(
            f"the job's secrets {', '.join(missing)} are not set",
            why="they are taken from the environment that profrun is called in",
            fix=f"export {missing[0]}=... first",
        )
    return found | {name: around[name] for name in job.secrets if name in around}


def secret_names(job: Job, cwd: Path) -> list[str]:
    """Names whose values the wrapper must not write: ``secrets``, and every variable of ``env_file``.

    A file that cannot be read is said by ``secret_env``; here it has no names.
    """
    named = set(job.secrets)
    if job.env_file:
        with contextlib.suppress(UsageError):
            named |= _file_env(cwd / job.env_file).keys()
    return sorted(named)


def withheld_notes(job: Job, cwd: Path, environ: Mapping[str, str]) -> list[str]:
    """What profilers that keep the environment in their files make the programs do without, a sentence each.

    Args:
        environ: the environment that the trials are started in.
    """
    gone = withheld_names(environ, {*job.env, *secret_names(job, cwd)})
    keepers = {found.name for name in job.collectors for found in candidates(name) if found.keeps_environment}
    return [f"{withheld_text(name, gone)}; {withheld_fix(gone)}" for name in sorted(keepers) if gone]


def _file_env(path: Path) -> dict[str, str]:
    """``NAME=value`` lines as `docker --env-file` reads them: no quoting, '#' lines skipped."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            f"env_file {path} cannot be read", why=why, fix="check `env_file` in the job"
        ) from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UsageError(f"{path}:{number}: not a NAME=value line", fix="correct it or make it a comment")
        found[name.strip()] = value
    return found
