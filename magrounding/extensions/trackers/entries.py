"""The trackers, and what sends to them, by name."""

from magrounding.registry import COMMANDS, SERVICES, TRACKERS, CommandEntry, Part, TrackerEntry

_TRACKERS = {
    "tensorboard": "tensorboard_events:TensorBoard",
    "wandb": "wandb_run:WandB",
    "mlflow": "mlflow_run:MLflow",
    "trackio": "trackio_run:Trackio",
}
_ABOUT = "Send what a run measured to TensorBoard, W&B, MLflow or Trackio."


def register() -> None:
    """Enter trackers, their command, and the callback of every run."""
    for id, place in _TRACKERS.items():
        TRACKERS.add(TrackerEntry(id, f"magrounding.extensions.trackers.{place}"))
    COMMANDS["track"] = CommandEntry("track", _ABOUT, "magrounding.extensions.trackers.cli.track", behind="compare")
    SERVICES.add(Part("tracking", "magrounding.extensions.trackers.tracking:Sender"))
