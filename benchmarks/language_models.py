"""Language models beside random, oracle and trained readers, on the same games: `python -m benchmarks.language_models`.

Each world is played with its true texts, and with controls that tell reading from guessing: a manual with other
assignments, another game's, none, and new names. Each of these is a match of its own in `--out`, so a command that was
stopped goes on, and asks for no reply twice.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from magrounding.agents.weights import versions
from magrounding.cli.command import REPEATABLE, CommandLine, items, program
from magrounding.cli.game_arguments import EvaluationArguments, LanguageModelArguments, QuietArguments
from magrounding.envs.make import make_vec
from magrounding.errors import ConfigurationError, check_choice
from magrounding.experiment.config import read_config
from magrounding.experiment.reports.match import calls_text, check_replies, summaries
from magrounding.experiment.tables import HOW_TO_READ, Cell, Table, code, page, percent, with_interval
from magrounding.extensions.language_models.models import read_models
from magrounding.pretrained import PREFIX, find_run, pretrained_names
from magrounding.progress import Display
from magrounding.registry import EnvEntry, env_entry
from magrounding.statistics import Interval
from magrounding.storage import check_place, write_atomic, write_json
from magrounding.teams.actor import begin_memory, has_expert
from magrounding.teams.evaluate import REASSIGNED, other_document
from magrounding.teams.lineup import LLM, ORACLE, RANDOM, Lineup
from magrounding.teams.match import Results, play_match
from magrounding.threads import plan_threads, using
from magrounding.vector import VectorEnv

PROG = "python -m benchmarks.language_models"
REFUSED, STOPPED = REPEATABLE, "stopped; the same command goes on"
NAME = "language_models"
"""Name of the files, before their endings."""
TRUE, OTHER_GAME, NO_TEXT, NEW_NAMES = "true", "of another game", "none", "new names"
CONTROLS = TRUE, REASSIGNED, OTHER_GAME, NO_TEXT, NEW_NAMES
_NEW_NAMES = "eval_new"
"""Evaluation set whose things have names that no game of training has."""
_FAR = 2**30
"""Distance of the seeds of games whose manuals others read."""


@dataclass(frozen=True, kw_only=True)
class Arguments(QuietArguments, LanguageModelArguments):
    """Let language models play worlds beside random, oracle and trained readers, with controls of reading."""

    models: str = ""
    """Names of models in --llm, or MODEL@URL, separated by commas. (default: all of the file)"""
    worlds: str = "rtfm:nl,messenger:s2,ma_rtfm:s5,ma_rtfm:s6,babyai:GoToLocal"
    """Environments, each with its stage behind a colon, or in its own default."""
    games: int = 100
    """Games of each line-up."""
    controls: str = ",".join(CONTROLS)
    """Texts that are read: true, reassigned, of another game, none, and new names; where a world has them."""
    max_cycles: int | None = None
    """Steps of a game at most. (default: the world's own limit, or 80 in RTFM)"""
    out: Path = Path("runs/language_models")
    """Folder of the matches and of language_models.md and .json."""


@dataclass(frozen=True)
class World:
    """A world: its environment and stage, options by control, and the line-ups of each control."""

    name: str
    options: Mapping[str, Mapping[str, Any]]
    lineups: Mapping[str, Sequence[Lineup]]

    @property
    def env(self) -> str:
        return self.name.partition(":")[0]


@dataclass(frozen=True)
class WithText(Lineup):
    """Line-up that reads another text in the place of the rules.

    Attributes:
        control: OTHER_GAME or NO_TEXT.
        rules: name of the text.
    """

    control: str = NO_TEXT
    rules: str = "manual"

    def build_actor(self, vec: VectorEnv, seed: int) -> OtherText:
        """Build the line-up's actor, to which each row shows the other text in its first game."""
        shape = vec.spec[self.rules].shape
        texts, keys = np.zeros((vec.num_envs, *shape), vec.spec[self.rules].dtype), np.zeros(vec.num_envs, np.int64)
        if self.control == OTHER_GAME:
            with closing(make_vec(vec.id, vec.num_envs, **vec.options)) as others:
                obs, info = others.reset(seed=seed + _FAR)
                texts, keys = obs[self.rules].copy(), info.document.copy()
        return OtherText(super().build_actor(vec, seed), self.rules, texts, keys)


class OtherText:
    """Actor to which the rows of a batch show given texts [B, …] as their rules; `keys` [B] tell them apart."""

    accepts_rows = draws = True

    def __init__(self, actor: Any, rules: str, texts: np.ndarray, keys: np.ndarray) -> None:
        self._actor, self._rules, self._texts, self._keys = actor, rules, texts, keys

    def initial_memory(self, num_envs: int, seed: int = 0) -> Any:
        return begin_memory(self._actor, num_envs, seed)

    def act(
        self, obs: Mapping[str, Any], memory: Any, info: Any, greedy: bool = True, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, Any]:
        """Let the actor act on the other texts."""
        more = {"rows": rows} if getattr(self._actor, "accepts_rows", False) else {}
        shown = {**info, "document": other_document(info["document"], self._keys)}
        return self._actor.act({**obs, self._rules: self._texts}, memory, shown, greedy, **more)


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play what is missing, and write the page and the numbers."""
    if arguments.games < 1:
        raise ConfigurationError(f"--games must be positive, got {arguments.games}")
    controls = [check_choice("control", each, CONTROLS) for each in items(arguments.controls)]
    models = arguments.language_models(ask_facts=True)
    names = items(arguments.models) or ([] if arguments.llm is None else list(read_models(arguments.llm)))
    if not names:
        raise ConfigurationError("name a file of language models with --llm, or some with --models MODEL@URL")
    asked = [f"{LLM}:{each}" for each in names]
    worlds = [_world(arguments, name, controls, asked, models) for name in items(arguments.worlds)]
    check_place(arguments.out / f"{NAME}.json")
    found: dict[str, dict[str, Results]] = {}
    with models, using(plan_threads(1, arguments.games)), Display(quiet=arguments.quiet) as display:
        for world in worlds:
            found[world.name] = {}
            for control, lineups in world.lineups.items():
                models.ask_facts = control in (TRUE, NEW_NAMES)
                folder = arguments.out / world.name.replace(":", "-") / control.replace(" ", "_")
                options = world.options[control]
                found[world.name][control] = play_match(
                    world.env, options, lineups, arguments.games, folder, display=display
                )
                display.say(f"{world.name}, {control}: done")
    report = page_of(found, arguments.games, str(line))
    content = {name: {control: _numbers(each) for control, each in of.items()} for name, of in found.items()}
    about = {"command": str(line), "versions": versions(), "games": arguments.games}
    write_json(arguments.out / f"{NAME}.json", {**about, "worlds": content})
    write_atomic(arguments.out / f"{NAME}.md", report)
    print(arguments.out / f"{NAME}.md" if arguments.quiet else f"{report}\nreport: {arguments.out / NAME}.md")
    for results in (each for of in found.values() for each in of.values()):
        check_replies(results.games)


def _world(arguments: Arguments, name: str, controls: Sequence[str], asked: Sequence[str], models: Any) -> World:
    """Return what is played in a world."""
    env, _, stage = name.partition(":")
    entry = env_entry(env)
    games = EvaluationArguments(env=env, stage=stage or None)
    limit = {} if arguments.max_cycles is None else {"max_cycles": arguments.max_cycles}
    true = games.chosen_games().but(**limit).options
    rules, sets = entry.evaluation.rules_text, entry.evaluation.sets_of(games.named_stage)
    options: dict[str, Mapping[str, Any]] = {TRUE: true}
    if "manual" in entry.options:
        options[REASSIGNED] = {**true, "manual": REASSIGNED}
    options |= dict.fromkeys((OTHER_GAME, NO_TEXT), true) if rules else {}
    if _NEW_NAMES in sets:
        options[NEW_NAMES] = {**true, **sets[_NEW_NAMES]}
    agents = entry.describe(**true).num_agents
    readers = list(_readers(entry, games.named_stage, agents))
    mate = readers[0] if readers else ORACLE if has_expert(env) else RANDOM
    together = [f"{model},{','.join([mate] * (agents - 1))}" for model in asked] if agents > 1 else []
    others = [RANDOM, *[ORACLE] * has_expert(env)]
    lineups = {}
    for control in (each for each in controls if each in options):
        texts = [*asked, *together, *readers, *(others if control in (TRUE, NEW_NAMES) else [])]
        chosen = [Lineup.parse(text, agents, models) for text in texts]
        if control in (OTHER_GAME, NO_TEXT):
            chosen = [WithText(each.players, each.name, control=control, rules=rules) for each in chosen]
        lineups[control] = chosen
    return World(name, options, lineups)


@cache
def _teams() -> dict[str, tuple[str, int, str]]:
    """Name → environment, agents and last stage of each trained team that comes with the package."""
    found = {}
    for name in pretrained_names():
        settings = read_config(find_run(PREFIX + name))
        found[PREFIX + name] = settings.env, settings.agents, tuple(settings.stages)[-1]
    return found


def _readers(entry: EnvEntry, stage: str, agents: int) -> list[str]:
    return [name for name, of in _teams().items() if of == (entry.id, agents, stage)]


def _numbers(results: Results) -> dict[str, Any]:
    return {
        name: {what: each._asdict() if isinstance(each, Interval) else each for what, each in summary.items()}
        for name, summary in summaries(results).items()
    }


def page_of(found: Mapping[str, Mapping[str, Results]], games: int, command: str) -> str:
    """Return all worlds as Markdown."""
    return page(
        "# Language models",
        HOW_TO_READ,
        f"{games:,} games of the same seeds for every line-up, in each row of each world; 95 % intervals over games. "
        "`reassigned`: the manual states other assignments. `of another game`: the manual, or the goal where there is "
        "none, is that of another game. `none`: it is empty. `new names`: things have names of no training game.",
        *(part for name, of in found.items() for part in _world_page(name, of)),
        f"Command: {code(command)}",
    )


def _world_page(world: str, found: Mapping[str, Results]) -> list[str]:
    """Return the tables of one world: wins by control, then what language models took with the true texts."""
    found_by = {control: summaries(results) for control, results in found.items()}
    players = dict.fromkeys(name for of in found_by.values() for name in of)
    measure = next(iter(found.values())).measure

    def wins(control: str, name: str) -> Cell:
        if name not in found_by[control]:
            return None
        return with_interval(found_by[control][name][measure], percent if measure == "won" else "{:.2f}".format)

    columns = {control: (lambda name, control=control: wins(control, name)) for control in found}
    parts = [f"## {world}", Table.of(players, {"line-up": code, **columns}).markdown()]
    for control, results in found.items():
        text = calls_text(results.calls, results.games)
        parts += [f"### {control}", text.partition("\n\n")[2]] if text else []
    return parts


main = program(PROG, __name__)

if __name__ == "__main__":
    sys.exit(main())
