"""Record games to learn from: `magrounding record --env ma_rtfm --stage s1 --out demos.npz`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from magrounding.cli.command import CommandLine
from magrounding.cli.game_arguments import LearningArguments, QuietArguments, WorkerArguments
from magrounding.cli.options import Paths, choose_workers, first_seed
from magrounding.envs.make import make_vec
from magrounding.errors import CheckpointError, ConfigurationError, check_choice
from magrounding.experiment.config import RunConfig, read_config
from magrounding.owner import new_file
from magrounding.pretrained import find_run
from magrounding.progress import Display
from magrounding.registry import service
from magrounding.storage import user_path
from magrounding.teams.actor import make_expert
from magrounding.teams.loading import load_team
from magrounding.teams.saved_games import ReplayActor, read_episodes, replayed
from magrounding.threads import plan_threads, using
from magrounding.training.demonstrations import Demonstrations
from magrounding.training.recording import RECORDING_SEED, record

ROWS = 256
"""Episodes that a program plays at once; of a simulator, as many as an evaluation of it has."""
ORACLE, KEYBOARD, RUN, SAVED = "oracle", "keyboard", "run", "saved"


@dataclass(frozen=True, kw_only=True)
class Arguments(QuietArguments, WorkerArguments, LearningArguments):
    """Let the oracle, a trained team or a person play, and keep the games in a file to learn from."""

    out: Path
    """File to write, e.g. demos.npz."""
    player: str = ORACLE
    """oracle (or the simulator's own bot), oracle:NAME (another oracle of the environment), run:DIR (the team that a
    run trained on this stage), keyboard (you), or saved:FILE (the games of a match; they have their own options and
    number)."""
    paths: Paths = ()
    """Options of the environment, after all flags, e.g. env.size=10. env.max_cycles is that of the run that plays, or
    else 80 in RTFM, and the world's own limit elsewhere."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play, write the file, say what is in it."""
    with new_file(arguments.out, "the recording of"):
        shown = _recorded(arguments)
        shown.save(arguments.out)
    size = arguments.out.stat().st_size / 1024
    results = f"games {len(shown.won):,}, steps {shown.steps:,}, win rate {shown.won.mean():.1%}, {size:,.1f} KiB"
    print(arguments.out if arguments.quiet else f"{arguments.out}: {results}")


def _recorded(arguments: Arguments) -> Demonstrations:
    first = first_seed(RECORDING_SEED, arguments.seed)
    kind, _, source = arguments.player.partition(":")
    if kind in ("pretrained", "hub"):
        kind, source = RUN, arguments.player
    if kind == SAVED and source:
        return _replayed(arguments, user_path(source))
    if not source or kind not in (ORACLE, RUN):
        check_choice("player", arguments.player, (ORACLE, f"{ORACLE}:NAME", KEYBOARD, f"{RUN}:DIR", f"{SAVED}:FILE"))
    entry, person = arguments.entry, kind == KEYBOARD
    trained = _trained(arguments, source) if kind == RUN else None
    games = arguments.chosen_games({} if trained is None else trained.env_options)
    workers = choose_workers(arguments.workers, games)
    rows = 1 if person else min(arguments.games, entry.evaluation.max_envs or ROWS)
    with using(plan_threads(1, ROWS)), closing(games.make_vec(rows, workers=0 if person else workers)) as vec:
        if person:
            player, played_by = service("keyboard")(vec), "a person"
        elif trained is not None:
            team = load_team(source, stage=arguments.named_stage)
            player, played_by = team.for_games(vec), f"{trained.agent} of {source}"
        else:
            own = ORACLE if entry.oracle else "the simulator's bot"
            player, played_by = make_expert(vec, source), arguments.player if source else own
        display = Display(quiet=arguments.quiet or person)
        with display, display.games(f"{played_by}: {entry.id}", arguments.games) as show_progress:
            return record(vec, player, arguments.games, first, played_by, on_progress=show_progress)


def _replayed(arguments: Arguments, file: Path) -> Demonstrations:
    """Make demonstrations of saved games, as they were played; ConfigurationError for options of other games."""
    header, episodes = read_episodes(file)
    options = Arguments(env=arguments.env, out=arguments.out, player=arguments.player, quiet=arguments.quiet)
    if header.env != arguments.env or arguments != options:
        raise ConfigurationError(
            f"{file} has games of {header.env} with options of their own: say --env {header.env} and leave out others"
        )
    with using(plan_threads(1, len(episodes))):
        list(replayed(file, header, episodes))  # refuses those that go another way now
        player = ReplayActor(episodes)
        with closing(make_vec(header.env, len(episodes), **header.options)) as vec:
            return record(vec, player, len(episodes), player.seed, ",".join(header.players))


def _trained(arguments: Arguments, source: str) -> RunConfig:
    """Return the settings of the run that trained a team; CheckpointError where it plays other games."""
    settings, agents = read_config(find_run(source)), arguments.stage_options().get("agents", 1)
    if (settings.env, settings.agents) != (arguments.env, agents):
        raise CheckpointError(
            f"the run in {source} plays {settings.env} with {settings.agents} agents, not {arguments.env} with {agents}"
        )
    return settings
