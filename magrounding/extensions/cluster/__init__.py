"""Clusters: Ray, Slurm, and sweeps over options."""
