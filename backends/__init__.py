"""What executes trials: local, docker, slurm, kubernetes; one module each, chosen by name in ``base``."""
