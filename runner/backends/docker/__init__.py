"""The docker backend: a trial is a container on this machine, with the least privilege its collector needs.

``host`` reads what decides a request, ``privileges`` and ``gpus`` are the tables, ``request`` makes the
container as a value, ``line`` and ``body`` say it to a shell and to the SDK, ``backend`` carries it out.
"""

from __future__ import annotations

from profrun.runner.backends.docker.backend import DockerBackend

__all__ = ["DockerBackend", "make"]


def make() -> DockerBackend:
    """The backend, for ``base.load``."""
    import docker  # noqa: F401  # not installed: said before a run folder is made

    return DockerBackend()
