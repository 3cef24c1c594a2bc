"""Evaluations of a run: its own weights within and after phases, and other players in the same games."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from traceback import format_exception
from typing import Any

from magrounding.agents.policy import evaluating
from magrounding.envs.make import Game
from magrounding.errors import Unplayable
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.plan import Plan
from magrounding.experiment.stage import StageSession
from magrounding.experiment.tables import AFTER, WITHIN
from magrounding.progress import Display
from magrounding.registry import env_entry
from magrounding.run_folder import RunFolder
from magrounding.spec import EnvSpec, TextChoices
from magrounding.teams.actor import Actor, NoReply, has_expert, make_expert
from magrounding.teams.evaluate import (
    GREEDY,
    PLAYS,
    REASSIGNED,
    REPORT_SEED,
    SELECTION_SEED,
    TRUE_MANUAL,
    Evaluation,
    evaluate,
)
from magrounding.teams.lineup import ORACLE, OVERLAP, RANDOM, Lineup
from magrounding.teams.scripted import OverlapTeam, random_team
from magrounding.teams.team import Team
from magrounding.threads import active_plan
from magrounding.vector import VectorEnv

SILENT, ALL = "silent", "all"
"""Where the manual is split: the oracle that guesses, the floor; and the oracle of games in which all read all."""
PLAYERS = RANDOM, OVERLAP, SILENT, ORACLE, ALL
"""Players beside the trained teams."""

Line = dict[str, Any]
Place = tuple[str, str, str]
"""Set, way of playing, and what is read."""


@dataclass(frozen=True)
class Evaluations:
    """Evaluations of one seed's weights; each logs a line for every set, way of playing and text.

    Sets whose games the networks cannot tell apart (`EvaluationPlan.aliases`) are played once. A set that they cannot
    play is left out, with a line that says why. `write` appends a line of a kind to the seed's metrics and returns it,
    with the entries that every line has.
    """

    plan: Plan
    seed: int
    write: Callable[[str, Line], Line]
    display: Display
    stop: StopRequest

    def within(self, session: StageSession) -> dict[Place, Line]:
        """Play the watched sets in the course of a phase.

        The selection set is played with reassigned manuals too, where the phase ends with how much is read.
        """
        config = self.plan.config.evaluation
        places = [(name, config.selection_play, TRUE_MANUAL) for name in config.watched_sets]
        if session.phase.until.reading is not None:
            places.append((config.selection_set, config.selection_play, REASSIGNED))
        return self._evaluate(session, WITHIN, places)

    def after(self, session: StageSession) -> str:
        """Play each set in both ways after a phase, and one of them with wrong texts; judge its gate.

        Returns:
            what is to be said of a gate that is missed; "": it is passed, or nothing was asked.
        """
        config, segment = self.plan.config.evaluation, session.segment
        texts = [(name, TRUE_MANUAL) for name in segment.reported]
        texts += [(self.plan.entry.evaluation.reading_set, manual) for manual in segment.wrong_manuals]
        places = [(name, play, text) for name, text in texts for play in PLAYS]
        gate = segment.phase.gate
        asked = [TRUE_MANUAL, REASSIGNED] if gate.reading else [TRUE_MANUAL] if gate.win_rate else []
        judged = [(config.selection_set, config.selection_play, text) for text in asked]
        results = self._evaluate(session, AFTER, list(dict.fromkeys(places + judged)))
        if results.keys().isdisjoint(judged):
            return ""
        wins, wrong = (results[place]["win_rate"] for place in (judged[0], judged[-1]))
        learnt = wins >= gate.win_rate and wins - wrong >= gate.reading
        says = (
            f"seed {self.seed} {segment.stage.label} {segment.phase.name} is {'' if learnt else 'NOT '}"
            f"learnt after {results[judged[0]]['steps']:,} steps: it wins {wins:.1%} of {config.selection_set} games "
            f"(its gate: {gate.win_rate:.1%})"
            + f", {wins - wrong:.1%} more than with reassigned manuals (its gate: {gate.reading:.1%})"
            * bool(gate.reading)
            + "; train anew with more steps (--budget) or other options, or go on: --resume unlearnt=continue"
            * (not learnt)
        )
        self.write("gate", {"learnt": learnt, "says": says})
        self.display.say(says)
        return "" if learnt else says

    def _evaluate(self, session: StageSession, when: str, places: list[Place]) -> dict[Place, Line]:
        """Play some places, write their results down and show them."""
        plan, config, segment = self.plan.entry.evaluation, self.plan.config.evaluation, session.segment
        most, seed = (config.report_games, REPORT_SEED) if when == AFTER else (config.selection_games, SELECTION_SEED)
        results: dict[Place, Line] = {}
        played: dict[Place, Line] = {}
        refused: set[str] = set()
        for name, play, text in places:
            games = most if text == TRUE_MANUAL else plan.baseline_games(most)
            alias = plan.played_as(name, depends_on_names=_team(session).depends_on_names), play, text
            if alias not in played and name not in refused:
                what = f"seed {self.seed}  {segment.stage.label} {segment.phase.name}: {name}, {play}"
                what = what if text == TRUE_MANUAL else f"{what}, {text}"
                try:
                    with self.stop.immediate(), self.display.games(what, games) as advance:
                        how = {"greedy": play == GREEDY, "manual": text, "on_progress": advance}
                        played[alias] = play_set(session, name, games, seed, **how).summary()
                except Unplayable as error:
                    refused.add(name)
                    self.display.say(f"{what}: left out, as {error}")
                    if when == AFTER:
                        self.write("unplayed", {"set": name, **why(error)})
            if alias in played:
                where = {"set": name, "when": when, "play": play, "manual": text}
                results[name, play, text] = self.write("evaluation", {**where, **played[alias]})
        for play in dict.fromkeys(play for _, play, _ in results):
            self._say(session, play, results)
        return results

    def _say(self, session: StageSession, play: str, results: dict[Place, Line]) -> None:
        """Show one line about a way of playing, for all sets and texts."""
        measure, segment = session.segment.stage.measure, session.segment
        what, show = ("wins", "{:.1%}".format) if measure == "win_rate" else ("scores", "{:.2f}".format)
        parts = [
            f"{name if text == TRUE_MANUAL else f'{name} ({text})'} {show(result[measure])}"
            for (name, how, text), result in results.items()
            if how == play
        ]
        games, steps = max((result["games"], result["steps"]) for result in results.values())
        self.display.say(
            f"seed {self.seed} {segment.stage.label} {segment.phase.name} after "
            f"{steps:,} steps: {play} play {what}, in {games:,} games at most, {', '.join(parts)}"
        )


def play_set(session: StageSession, evaluation_set: str, games: int, seed: int, **how: Any) -> Evaluation:
    """Play games of an evaluation set with the weights as they are; arguments as of `evaluate`."""
    since, team, settings = time.perf_counter(), _team(session), session.settings
    how |= {"num_threads": active_plan().world, "workers": settings.workers}
    with evaluating(*team.policies):
        result = evaluate(team, session.segment.stage.sets[evaluation_set], {}, games, seed, **how)
    session.clock.add("evaluation", since)
    return result


def _team(session: StageSession) -> Team:
    return Team([player.policy for player in session.players], session.vec.spec)


_TEAMS: Mapping[str, Callable[[VectorEnv], Actor]] = {
    RANDOM: random_team,
    OVERLAP: lambda vec: OverlapTeam(vec.spec),
    ORACLE: lambda vec: make_expert(vec),
}


def why(error: Unplayable) -> dict[str, str]:
    """The reason for which a set is left out, for logs: the sentence, and the place in the network."""
    return {"reason": str(error), "traceback": "".join(format_exception(error))}


def compared(env: str, spec: EnvSpec) -> tuple[str, ...]:
    """The players beside the trained teams of an environment; OVERLAP where a task is read and texts are chosen."""
    overlap = isinstance(spec.actions, TextChoices) and bool(spec.lasting_texts)
    return (RANDOM, *[OVERLAP] * overlap, *[ORACLE] * has_expert(env, spec))


def play_baselines(
    game: Game,
    name: str,
    games: int,
    *,
    diagnose: bool = False,
    workers: int | str = 0,
    display: Display | None = None,
    lineups: Sequence[Lineup] = (),
) -> dict[str, Line]:
    """Let the players `compared`, then line-ups, play an evaluation set of this `name`; return player → summary.

    The random player plays those of the games that `EvaluationPlan.baseline_games` says. Of language models there is
    also what they replied (`Lineup.call_totals`), where their calls are kept.
    """
    display = display or Display(quiet=True)
    fewer, found = env_entry(game.id).evaluation.baseline_games(games), {}

    def played(what: str, team: Callable[[VectorEnv], Actor], games: int, **options: Any) -> Line:
        how = {"diagnose": diagnose, "workers": workers}
        with display.games(what, games) as advance:
            return evaluate(team, game, options, games, REPORT_SEED, on_progress=advance, **how).summary()

    for player in compared(game.id, game.spec):
        found[player] = played(f"{player}: {name}", _TEAMS[player], fewer if player == RANDOM else games)
    if game.whole:
        found[SILENT] = played(f"{SILENT}: {name}", partial(make_expert, oracle=SILENT), games)
        found[ALL] = played(f"{ALL}: {name}", make_expert, games, **game.whole)
    for lineup in lineups:
        here = replace(lineup, name=f"{lineup.name}, {name}")  # by which its calls are found
        summary = played(here.name, partial(here.build_actor, seed=REPORT_SEED), games)
        failures = here.asked.given_up.get(here.name, {}) if here.asked else {}
        if failures and len(failures) >= games:
            raise NoReply(f"no game of {here.name} came to its end: {next(iter(failures.values()))}")
        found[lineup.name] = {**summary, **here.call_totals()}
    return found


def play_missing(plan: Plan, folder: RunFolder, display: Display | None = None) -> None:
    """Play the baselines of a run that its folder does not hold yet, for every set that it is evaluated on."""
    known, settings = folder.baselines(), plan.config
    seeds = folder.of_seeds(settings.seeds).values()
    for segment in plan.segments:
        stage = segment.stage
        if not any(seed.weights(stage.name).exists() for seed in seeds):
            continue
        for name in segment.reported:
            if (place := f"{stage.name}/{name}") not in known:
                how = {"workers": settings.workers, "display": display}
                known[place] = play_baselines(stage.sets[name], name, settings.evaluation.report_games, **how)
                folder.write_baselines(known)
