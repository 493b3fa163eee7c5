"""What executes trials: local, docker, slurm and kubernetes. ``base.load`` gives one by its name."""
