"""What clusters need, by name."""

from magrounding.registry import COMMANDS, SERVICES, WORKERS, CommandEntry, Part

_COMMANDS = {
    "sweep": "Train a run at each point of a grid, or at those that Optuna chooses, and compare them.",
    "jobs": "Print a run's commands, one for each seed, for Slurm, GNU parallel or xargs.",
}


def register() -> None:
    """Enter commands, the workers "ray:K" of simulators, and the places of jobs with --cluster."""
    for name, about in _COMMANDS.items():
        COMMANDS[name] = CommandEntry(name, about, f"magrounding.extensions.cluster.cli.{name}", behind="compare")
    WORKERS.add(Part("ray", "magrounding.extensions.cluster.ray_workers:RayWorkers"))
    SERVICES.add(Part("cluster", "magrounding.extensions.cluster.places:RayPlaces"))
