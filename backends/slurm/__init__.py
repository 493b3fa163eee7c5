"""Backend ``slurm``: one array job a resource shape, through Slurm's own commands.

profrun is no scheduler and trusts none: what a trial did is what its wrapper wrote into ``exit.json``.
Slurm's word counts only where that file is missing, and never as success.
"""

from profrun.backends.slurm.backend import SlurmBackend


def make() -> SlurmBackend:
    """The backend, for ``base.load``."""
    return SlurmBackend()
