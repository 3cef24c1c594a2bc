"""Keep a trained team by a name, or give it to others: `magrounding publish --run runs/… --name ma_rtfm-s5-2agents`."""

from __future__ import annotations

import json
import re
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from magrounding.agents.weights import save_weights
from magrounding.cli.command import CommandLine
from magrounding.cli.options import chosen_team
from magrounding.cli.replay import ending
from magrounding.cli.watch import play_game
from magrounding.errors import CheckpointError, ConfigurationError, MagroundingError
from magrounding.experiment.config import RunConfig
from magrounding.experiment.reports.card import CARD_FILE, model_card
from magrounding.experiment.results import RunResults, read_results
from magrounding.experiment.tables import AFTER
from magrounding.owner import owned
from magrounding.pretrained import ABOUT_FILE, own_folder, pretrained_names
from magrounding.pretrained.hub import HUB, check_repository, client, upload_team
from magrounding.run_folder import RunFolder
from magrounding.statistics import Reached
from magrounding.storage import check_place, write_atomic, write_folder, write_json
from magrounding.teams.evaluate import TRUE_MANUAL
from magrounding.teams.film import GIF, PNG, film
from magrounding.teams.loading import load_team
from magrounding.teams.team import Team
from magrounding.threads import ThreadPlan, using
from magrounding.training.algorithm import IMITATE

_FILMED = 120
"""Steps of the longest game that a film shows; of a longer one there is a sheet of pictures."""
_MILLISECONDS = 600


@dataclass(frozen=True)
class Arguments:
    """Keep one stage of one seed of a run as a team that has a name, in half precision, with its win rates."""

    run: Path
    """Run folder."""
    name: str = ""
    """Name that load_team("pretrained:<name>") takes, and that of the team's folder. (default: with --hub, its NAME)"""
    stage: str | None = None
    """Stage whose weights are published. (default: the run's last)"""
    seed: int | None = None
    """Seed of the run whose weights are published. (default: the first)"""
    to: Path | None = None
    """Folder that gets a folder for the team, with a model card (README.md) and a film of a game; pretrained:<name>
    finds teams in the default one only, without card and film. (default: the package's in a checkout, else
    ~/.local/share/magrounding/pretrained)"""
    hub: str = ""
    """Repository of a model hub, OWNER/NAME, to which the folder with card and film is uploaded (extra `hub`), by the
    account of `hf auth login` or HF_TOKEN; load_team("hub:OWNER/NAME") loads it from there. (default: none)"""
    private: bool = False
    """Make the repository of --hub private, so that others cannot see it."""
    license: str = ""
    """License of the weights for the model card, by its SPDX id, such as mit. (default: none is named)"""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Copy, check that it loads, write down where it came from, and upload it where asked to."""
    if arguments.hub:
        check_repository(arguments.hub)
        client()
    elif arguments.private:
        raise ConfigurationError("--private is for a repository of --hub")
    name = arguments.name or arguments.hub.rpartition("/")[2]
    if not name or Path(name).name != name or name.startswith("."):
        raise ConfigurationError(f"--name is the name of a folder that is not hidden, got {name!r}")
    kept = TemporaryDirectory() if arguments.hub and arguments.to is None else nullcontext(arguments.to or own_folder())
    with kept as folder:
        known = Path(folder).resolve() == own_folder().resolve()
        target = Path(folder) / name
        if target.exists() or (known and name in pretrained_names()):
            raise CheckpointError(f"there is a team {name!r} already: choose another --name, or remove {target}")
        check_place(target)
        _write(arguments, target, card=not known)
        if not arguments.hub or arguments.to is not None:
            source = f"pretrained:{name}" if known else str(target)
            print(f"{target}: load it with load_team({source!r})")
        if arguments.hub:
            address = upload_team(target, arguments.hub, private=arguments.private)
            print(f"{address}: load it with load_team({HUB + arguments.hub!r})")


def _write(arguments: Arguments, target: Path, *, card: bool) -> None:
    """Write the team's folder, with a model card where it goes to others."""
    results = read_results(arguments.run)
    settings = results.settings
    # Folders of absolute paths would tell others about this machine.
    config = json.loads(re.sub(r"""(?<=[\s='"])/[^\s'"]*/""", "", json.dumps(results.config)))
    seed, stage = chosen_team(settings, arguments.seed, arguments.stage)
    source = RunFolder(arguments.run).seed(seed, len(settings.seeds))
    team = load_team(arguments.run, seed, stage)
    about = {"command": config.get("command"), "seed": seed, **_about(results, seed, stage)}
    rounded = [
        {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in policy.state_dict().items()}
        for policy in team.policies
    ]
    trained = list(settings.stages[: settings.stages.index(stage) + 1])
    with owned(target, f"the publishing of {target.name}", file=True), write_folder(target) as made:
        save_weights(made / stage, rounded, source.state(stage))
        RunFolder(made).write_config({**config, "seeds": [seed], "stages": trained})
        write_json(made / ABOUT_FILE, about)
        if card:
            shown = _film(made, team, settings, stage)
            text = model_card(
                target.name, settings, stage, about, repository=arguments.hub, license=arguments.license, film=shown
            )
            write_atomic(made / CARD_FILE, text)


def _about(results: RunResults, seed: int, stage: str) -> dict[str, Any]:
    """Return what the team reached, and after how much training."""
    last = results.settings.of_stage(stage)[-1].name
    after = results.select("evaluation", seed, stage=stage, phase=last, when=AFTER, manual=TRUE_MANUAL)
    ended = results.select("phase", seed, stage=stage)
    if not after or not ended:
        raise CheckpointError(f"{results.folder} has not been evaluated after {stage}: let it go on with --resume")
    won = {f"{line['set']}, {line['play']}": Reached(line["win_rate"], line["games"], is_share=True) for line in after}
    return {
        "date": date.today().isoformat(),
        "learnt_by": results.plan.find(stage, ended[-1]["phase"] if ended[-1]["best_steps"] else IMITATE).learnt_by,
        "environment_steps": ended[-1]["total_steps"],
        "training_minutes": round(ended[-1]["training_seconds"] / 60, 1),
        "games": int(after[0]["games"]),
        "precision": "weights in float16; win rates are those of float32, before rounding",
        "win_rates": {name: each.value for name, each in won.items()},
        "intervals": {name: each.interval[1:] for name, each in won.items()},
        "scores": {f"{line['set']}, {line['play']}": line["score"] for line in after if "score" in line},
    }


def _film(folder: Path, team: Team, settings: RunConfig, stage: str) -> str:
    """Write a film of the first held-out game, or a sheet of a long one, and return the card's line for it."""
    plan = settings.resolve()
    held_out = plan.entry.evaluation.held_out_set(stage)
    try:
        with using(ThreadPlan()), closing(plan.stages[stage].sets[held_out].make("rgb_array")) as env:
            frames, _, won = play_game(team, env, 0, greedy=True)
    except MagroundingError as error:  # a world without pictures
        print(f"the model card shows no game: {error}")
        return ""
    suffix = GIF if len(frames) <= _FILMED else PNG
    write_atomic(folder / f"game{suffix}", film(frames, suffix, _MILLISECONDS))
    end = ending(won, len(frames) - 1)
    return f"![A game of the team](game{suffix})\n\nGame 0 of `{held_out}`, not chosen: {end}."
