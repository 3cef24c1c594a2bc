"""Keep a trained team by a name: `magrounding publish --run runs/… --name ma_rtfm-s5-2agents`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from magrounding.agents.weights import save_weights
from magrounding.cli.command import CommandLine, derived
from magrounding.cli.options import chosen_team
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.config import read_config
from magrounding.experiment.metrics import read_metrics
from magrounding.play.evaluate import TRUE_MANUAL
from magrounding.play.loading import load_team
from magrounding.play.owner import owned
from magrounding.play.run_folder import RunFolder
from magrounding.pretrained import ABOUT_FILE, own_folder, pretrained_names
from magrounding.storage import check_place, write_folder, write_json
from magrounding.training.algorithm import IMITATE


@dataclass(frozen=True)
class Arguments:
    """Keep one stage of one seed of a run as a team that has a name, in half precision, with its win rates."""

    run: Path
    """Run folder."""
    name: str
    """What load_team("pretrained:<name>") will take."""
    stage: str | None = derived("the run's last")
    """Which stage."""
    seed: int | None = derived("the first")
    """Which of the run's seeds."""
    to: Path | None = derived("the package's in a checkout, else ~/.local/share/magrounding/pretrained")
    """Folder that gets a folder for the team; pretrained:<name> finds it in the default one only."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Copy, check that it loads, and write down where it came from."""
    if Path(arguments.name).name != arguments.name or arguments.name.startswith("."):
        raise ConfigurationError(f"--name is the name of a folder that is not hidden, got {arguments.name!r}")
    known = arguments.to is None or arguments.to.resolve() == own_folder().resolve()
    settings, target = read_config(arguments.run), (arguments.to or own_folder()) / arguments.name
    if known and arguments.name in pretrained_names():
        raise CheckpointError(f"there is a pretrained team {arguments.name!r} already: choose another --name")
    if target.exists():
        raise CheckpointError(f"{target} exists already: remove it first, or choose another --name")
    check_place(target)
    seed, stage = chosen_team(settings, arguments.seed, arguments.stage)
    run = RunFolder(arguments.run)
    source = run.seed(seed, len(settings.seeds))
    team = load_team(arguments.run, seed, stage)
    lines = read_metrics(source.metrics)
    after = [
        line
        for line in lines
        if line["kind"] == "evaluation"
        and (line["stage"], line["when"], line["manual"]) == (stage, "after", TRUE_MANUAL)
        and line["phase"] == settings.of_stage(stage)[-1].name
    ]
    ended = [line for line in lines if line["kind"] == "phase" and line["stage"] == stage]
    if not after or not ended:
        raise CheckpointError(f"{arguments.run} has not been evaluated after {stage}: let it go on with --resume")
    config = run.config()
    about = {
        "command": config.get("command"),
        "date": date.today().isoformat(),
        "seed": seed,
        "learnt_by": settings.learnt_by(stage, ended[-1]["phase"] if ended[-1]["best_steps"] else IMITATE),
        "environment_steps": ended[-1]["total_steps"],
        "training_minutes": round(ended[-1]["training_seconds"] / 60, 1),
        "games": int(after[0]["games"]),
        "precision": "weights in float16; win rates are those of float32, before rounding",
        "win_rates": {f"{line['set']}, {line['play']}": line["win_rate"] for line in after},
    }
    rounded = [
        {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in policy.state_dict().items()}
        for policy in team.policies
    ]
    trained = list(settings.stages[: settings.stages.index(stage) + 1])
    with owned(target, f"the publishing of {arguments.name}", file=True), write_folder(target) as made:
        save_weights(made / stage, rounded, source.state(stage))
        RunFolder(made).write_config({**config, "seeds": [seed], "stages": trained})
        write_json(made / ABOUT_FILE, about)
    source = f"pretrained:{arguments.name}" if known else str(target)
    print(f"{target}: load it with load_team({source!r})")
