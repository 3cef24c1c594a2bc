"""Put a trained team behind a segmenter: `magrounding segments --run pretrained:ma_rtfm-s5-2agents --out runs/s5`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from magrounding.agents.building import build_policy
from magrounding.agents.segments import LEARNT, SEGMENTS
from magrounding.agents.weights import STATE_FILE, fit_weights, save_weights
from magrounding.cli.command import CommandLine, run_command
from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.experiment.progress import duration
from magrounding.experiment.report import percent, table
from magrounding.experiment.segmenting import learn_from_games, segmenters_of, statements_found
from magrounding.experiment.settings import check_seed, read_settings
from magrounding.play.team import CONFIG_FILE, load_team, seed_folder
from magrounding.pretrained import find_run
from magrounding.storage import check_place, read_json, write_json

OPTION = "segments"
"""Of networks that read by relread."""


@dataclass(frozen=True)
class Arguments:
    """Write a run folder whose team cuts manuals into statements, and is the trained one in all else."""

    run: str
    """Run folder (or pretrained:<name>) of a team whose networks have the option segments."""
    out: Path
    """Folder of the new run."""
    by: str = LEARNT
    """learnt: a segmenter learns it from the manuals of the stage's training games; stops: at full stops; rows: not."""
    stage: str | None = None
    """Whose weights, and whose manuals; the run's last by default."""
    trained_seed: int | None = None
    """Which of the run's seeds; the first by default."""
    seed: int = 0
    """Of the segmenter's weights, and of the games whose manuals it learns from."""


def main(line: CommandLine) -> int:
    """Run the command and return its exit code."""
    arguments = line.parse(Arguments)
    return run_command(lambda: put_behind(arguments, str(line)))


def put_behind(arguments: Arguments, command: str) -> None:
    """Learn to cut, say how well, and write the team down."""
    choose("way to find statements --by", arguments.by, SEGMENTS)
    check_seed(arguments.seed)
    if arguments.out.exists():
        raise CheckpointError(f"{arguments.out} exists already: remove it first, or choose another --out")
    settings, config = read_settings(find_run(arguments.run)), read_json(find_run(arguments.run) / CONFIG_FILE)
    seeds, own = [str(k) for k in settings.seeds], arguments.trained_seed
    seed = int(choose("seed of this run", seeds[0] if own is None else str(own), seeds))
    stage = choose("stage of this run", arguments.stage or settings.stages[-1], settings.stages)
    if OPTION not in vars(settings.make_network().config):
        raise ConfigurationError(f"agent {settings.agent!r} has no option {OPTION}: choose a team on relread")
    team = load_team(arguments.run, seed, stage)
    stages = settings.stages[: settings.stages.index(stage) + 1]
    changed = replace(settings.with_network({OPTION: arguments.by}), seeds=(seed,), stages=stages)
    policies = [build_policy(settings.agent, team.spec, changed.policy_options, 0) for _ in team.policies]
    for policy, trained in zip(policies, team.policies, strict=True):
        state = policy.state_dict()
        fit_weights(policy, {**state, **{k: v for k, v in trained.state_dict().items() if k in state}}, arguments.run)
    check_place(arguments.out / CONFIG_FILE)
    segmenters = segmenters_of(policies)
    if segmenters:
        start = time.monotonic()
        learnt = learn_from_games(changed, stage, arguments.seed)
        print(f"learnt to cut the manuals of {stage} in {duration(time.monotonic() - start)}", flush=True)
        found = statements_found(changed, stage, learnt)
        heads = ["manuals divided as their statements are", *next(iter(found.values()))]
        print(table(heads, [[name, *map(percent, row.values())] for name, row in found.items()]))
        for each in segmenters:
            each.load_state_dict(learnt.state_dict())
    source = seed_folder(find_run(arguments.run), seed, len(settings.seeds)) / stage / STATE_FILE
    save_weights(arguments.out / stage, [policy.state_dict() for policy in policies], read_json(source))
    about = {"command": command, "team": arguments.run}
    write_json(arguments.out / CONFIG_FILE, {**config, **changed.to_dict(), **about}, sealed=True)  # last: it is a run
    print(f"{arguments.out}: a run like any other, e.g. magrounding evaluate --run {arguments.out}")
