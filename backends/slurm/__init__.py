"""Backend ``slurm``: one array job for each site, through Slurm's own commands.

How a trial ended is read from the ``exit.json`` that its wrapper wrote. What Slurm says of a job counts only
where that file is missing, and never as ``finished``.
"""

from profrun.backends.slurm.backend import SlurmBackend


def make() -> SlurmBackend:
    """The backend, for ``base.load``."""
    return SlurmBackend()
