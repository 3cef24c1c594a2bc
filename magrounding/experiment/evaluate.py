"""What is played to judge a run: its own weights within and after phases, and other players in the same games."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from magrounding.experiment.config import RunConfig
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.progress import Display
from magrounding.experiment.stage import StageSession
from magrounding.experiment.tables import AFTER, WITHIN
from magrounding.play.actor import Actor, has_expert, make_expert
from magrounding.play.evaluate import GREEDY, PLAYS, REPORT_SEED, SELECTION_SEED, TRUE_MANUAL, evaluate
from magrounding.play.lineup import ORACLE, OVERLAP, RANDOM
from magrounding.play.overlap import OverlapTeam
from magrounding.play.run_folder import RunFolder, SeedFolder
from magrounding.play.scripted import random_team
from magrounding.registry import EnvEntry, env_entry
from magrounding.spec import EnvSpec, TextChoices
from magrounding.vector import VectorEnv

PLAYED_IN = "played_in"
"""Entry of results that were not played: the phase that ended with the same weights."""
PLAYERS = RANDOM, OVERLAP, ORACLE
"""Players beside the trained teams."""

Line = dict[str, Any]
Place = tuple[str, str, str]
"""Set, way of playing, and what is read."""


class Evaluations:
    """Evaluates the weights of one seed and logs a line for each set, way of playing and text.

    Played once are sets whose games the networks cannot tell apart (`EvaluationPlan.aliases`), and those of weights
    with which the phase before ended. All that is known stands in `metrics.jsonl`, so that a resumed run plays what it
    would have played.

    Args:
        settings: of the run.
        seed: which of its seeds.
        folder: of the seed.
        write: appends a line to its metrics.
        begin: the entries with which such a line begins now.
        display: shows results and how far games are.
        stop: Ctrl-C.
    """

    def __init__(
        self,
        settings: RunConfig,
        seed: int,
        folder: SeedFolder,
        write: Callable[[Line], None],
        begin: Callable[[], Line],
        display: Display,
        stop: StopRequest,
    ) -> None:
        self._settings, self._seed, self._metrics = settings, seed, folder.metrics
        self._write, self._begin, self._display, self._stop = write, begin, display, stop

    def within(self, session: StageSession, *, inherited: bool) -> dict[str, Line]:
        """Results by set in the course of a phase; `inherited`: with the weights of the phase before."""
        before = self._of_phase_before(session, WITHIN) if inherited else []
        config = self._settings.evaluation
        places = [(name, config.selection_play, TRUE_MANUAL) for name in config.watched_sets if session.plays(name)]
        results = self._evaluate(session, WITHIN, places, before)
        return {name: result for (name, *_), result in results.items()}

    def after(self, session: StageSession, *, inherited: bool) -> None:
        """Play each set in both ways after a phase, and one of them with wrong texts; see `within`."""
        settings = self._settings
        before = self._of_phase_before(session, AFTER) if inherited else []
        sets = settings.evaluation_sets(session.stage, session.phase)
        texts = [(name, TRUE_MANUAL) for name in sets if session.plays(name)]
        *_, last = settings.walk()
        read = settings.entry.evaluation.reading_set
        if (settings.evaluation.read_always or (session.stage, session.phase) == last) and session.plays(read):
            texts += [(read, manual) for manual in settings.wrong_manuals]
        self._evaluate(session, AFTER, [(name, play, text) for name, text in texts for play in PLAYS], before)

    def _of_phase_before(self, session: StageSession, when: str) -> list[Line]:
        """What was written of the weights with which the phase before ended."""
        phases = self._settings.of_stage(session.stage)
        where = {"stage": session.stage, "phase": phases[phases.index(session.phase) - 1].name}
        lines = [line for line in read_metrics(self._metrics) if where.items() <= line.items()]
        chosen = [line["best_steps"] for line in lines if line["kind"] == "phase"]
        own = [line for line in lines if line["kind"] == "evaluation" and line["when"] == when]
        return own if when == AFTER else [line for line in own if line["steps"] in chosen]

    def _evaluate(self, session: StageSession, when: str, places: list[Place], before: list[Line]) -> dict[Place, Line]:
        """Find or play the results of some places, write them down and show them."""
        plan, config = self._settings.entry.evaluation, self._settings.evaluation
        most, seed = (config.report_games, REPORT_SEED) if when == AFTER else (config.selection_games, SELECTION_SEED)
        results: dict[Place, Line] = {}
        played: dict[Place, Line] = {}
        for name, play, text in places:
            games = most if text == TRUE_MANUAL else plan.baseline_games(most)
            where = {"set": name, "when": when, "play": play, "manual": text}
            alias = plan.played_as(name, depends_on_names=session.depends_on_names)
            result = played.get((alias, play, text)) or self._earlier(before, where, games)
            if result is None:
                stage = self._settings.stage_name(session.stage)
                what = f"seed {self._seed}  {stage} {session.phase.name}: {name}, {play}"
                what = what if text == TRUE_MANUAL else f"{what}, {text}"
                with self._stop.immediate(), self._display.games(what, games) as advance:
                    result = session.evaluate(name, games, seed, play == GREEDY, text, advance).summary()
            played[alias, play, text] = results[name, play, text] = result
            self._write({**self._begin(), **where, **result})
        for play in dict.fromkeys(play for _, play, _ in places):
            self._say(session, play, {(name, text): each for (name, how, text), each in results.items() if how == play})
        return results

    def _earlier(self, before: list[Line], where: Line, games: int) -> Line | None:
        """The results of the same weights in the same games, as they were written down."""
        wanted, beside = {**where, "games": games}, {*where, *self._begin()}
        for line in before:
            if wanted.items() <= line.items():
                result = {name: value for name, value in line.items() if name not in beside}
                return {**result, PLAYED_IN: line["phase"]}
        return None

    def _say(self, session: StageSession, play: str, results: dict[tuple[str, str], Line]) -> None:
        """Show one line about a way of playing, for all sets and texts."""
        measure, plan = self._settings.measure(session.stage), self._settings.entry.evaluation
        show = "{:.1%}".format if measure == "win_rate" else "{:.2f}".format
        games = max(result["games"] for result in results.values())
        parts: list[str] = []
        wrong: list[str] = []
        for (name, text), result in results.items():
            shown, phase, few = show(result[measure]), result.get(PLAYED_IN), result["games"]
            if text == TRUE_MANUAL:
                parts.append(f"{name} {shown}" + (f" (as in {phase})" if phase else ""))
            else:
                wrong.append(f"{text} {shown}" + ("" if few == games else f" in {few:,} games"))
        read = f"; {plan.rules_text or 'manual'} in {plan.reading_set} {', '.join(wrong)}" if wrong else ""
        what = "wins" if measure == "win_rate" else "scores"
        self._display.say(
            f"seed {self._seed} {self._settings.stage_name(session.stage)} {session.phase.name} after "
            f"{self._begin()['steps']:,} steps: {play} play {what}, in {games:,} games each, {', '.join(parts)}{read}"
        )


_TEAMS: Mapping[str, Callable[[VectorEnv], Actor]] = {
    RANDOM: random_team,
    OVERLAP: lambda vec: OverlapTeam(vec.spec),
    ORACLE: lambda vec: make_expert(vec),
}


def compared(env: str, spec: EnvSpec) -> tuple[str, ...]:
    """The players beside the trained teams of an environment; OVERLAP where a task is read and texts are chosen."""
    overlap = isinstance(spec.actions, TextChoices) and bool(spec.lasting_texts)
    return (RANDOM, *[OVERLAP] * overlap, *[ORACLE] * has_expert(env, spec))


def play_baselines(
    env: str,
    options: Mapping[str, Any],
    name: str,
    games: int,
    *,
    diagnose: bool = False,
    workers: int = 0,
    display: Display | None = None,
) -> dict[str, Line]:
    """Let the players `compared` play an evaluation set.

    Args:
        env, options: environment id and options of the set.
        name: of the set, to show.
        games: how many; of the random player those of `EvaluationPlan.baseline_games`.
        diagnose, workers: see `evaluate`.
        display: shows how far games are.

    Returns:
        player → summary.
    """
    entry: EnvEntry = env_entry(env)
    found = {}
    for player in compared(env, entry.describe(**options)):
        own = entry.evaluation.baseline_games(games) if player == RANDOM else games
        with (display or Display(quiet=True)).games(f"{player}: {name}", own) as advance:
            found[player] = evaluate(
                *(_TEAMS[player], env, options, own, REPORT_SEED),
                diagnose=diagnose,
                workers=workers,
                on_progress=advance,
            ).summary()
    return found


def play_missing(settings: RunConfig, folder: RunFolder, display: Display | None = None) -> None:
    """Play the baselines of a run that its folder does not hold yet, for every set that it is evaluated on."""
    known = folder.baselines()
    seeds = [folder.seed(seed, len(settings.seeds)) for seed in settings.seeds]
    for stage in settings.stages:
        phases = settings.of_stage(stage)
        sets = dict.fromkeys(name for phase in phases for name in settings.evaluation_sets(stage, phase))
        if not any(seed.weights(stage).exists() for seed in seeds):
            continue
        for name in sets:
            if f"{stage}/{name}" not in known:
                options, games = settings.stage_options(stage, name), settings.evaluation.report_games
                known[f"{stage}/{name}"] = play_baselines(
                    *(settings.env, options, name, games), workers=settings.workers, display=display
                )
                folder.write_baselines(known)
