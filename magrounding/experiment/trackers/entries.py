"""The trackers of this package: id, where it stands."""

from magrounding.registry import TrackerEntry

_HERE = "magrounding.experiment.trackers"

TRACKERS = (
    TrackerEntry("tensorboard", f"{_HERE}.tensorboard_events:TensorBoard"),
    TrackerEntry("wandb", f"{_HERE}.wandb_run:WandB"),
    TrackerEntry("mlflow", f"{_HERE}.mlflow_run:MLflow"),
    TrackerEntry("trackio", f"{_HERE}.trackio_run:Trackio"),
)
