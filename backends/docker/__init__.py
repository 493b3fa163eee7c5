"""The docker backend: a trial is a container on this machine, with the least privilege its collector needs.

``host`` reads what decides a request, ``privileges`` and ``gpus`` are the tables, ``request`` makes the
container as a value, ``cli_args`` and ``sdk_args`` say it to a shell and to the SDK, ``backend`` carries it
out, ``survey`` says what the engine can do.
"""

from __future__ import annotations

from importlib.util import find_spec

from profrun.backends.docker.backend import DockerBackend
from profrun.errors import UnavailableError

__all__ = ["DockerBackend", "make"]


def make() -> DockerBackend:
    """The backend, for ``base.load``. The SDK is looked for and not imported: a dry run does without it.

    Raises:
        UnavailableError: the docker package is not installed.
    """
    if find_spec("docker") is None:  # said before a run folder is made
        raise UnavailableError(
            "backend docker cannot be used", why="no Python package 'docker' here", fix="pip install docker"
        )
    return DockerBackend()
