"""Evaluations of one seed: what has to be played, what is known already, and the lines that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from magrounding.experiment.config import RunConfig
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.progress import Display
from magrounding.experiment.stage import StageSession
from magrounding.play.evaluate import FAULTS, GREEDY, PLAYS, REPORT_SEED, SELECTION_SEED, TRUE_MANUAL

WITHIN, AFTER = "within", "after"
"""When an evaluation is: in the course of a phase, where it chooses weights, or after it, where it is reported."""
PLAYED_AS, PLAYED_IN = "played_as", "played_in"
"""Entries of results that were not played: the set, or the phase, whose games could not but go the same way."""

Line = dict[str, Any]
Place = tuple[str, str, str]
"""Set, way of playing, and what is read."""


class Evaluations:
    """Evaluates weights and writes down what they reach. Games that cannot but go as others went are not played again.

    They cannot where two sets differ in nothing that the players heed (`EvaluationPlan.same_games`), and where the
    weights are those with which the phase before ended. All that is known stands in `metrics.jsonl`, so that a resumed
    run plays what it would have played.

    Args:
        settings: of the run.
        seed: which of its seeds.
        metrics: the seed's `metrics.jsonl`.
        write: appends a line to it.
        begin: the entries with which such a line begins now.
        display: what the person sees.
        stop: Ctrl-C.
    """

    def __init__(
        self,
        settings: RunConfig,
        seed: int,
        metrics: Path,
        write: Callable[[Line], None],
        begin: Callable[[], Line],
        display: Display,
        stop: StopRequest,
    ) -> None:
        self._settings, self._seed, self._metrics = settings, seed, metrics
        self._write, self._begin, self._display, self._stop = write, begin, display, stop

    def within(self, session: StageSession, *, inherited: bool) -> dict[str, Line]:
        """Results by set in the course of a phase; `inherited`: with the weights of the phase before."""
        before = self._of_phase_before(session, WITHIN) if inherited else []
        config = self._settings.evaluation
        places = [(name, config.selection_play, TRUE_MANUAL) for name in config.watched_sets if session.plays(name)]
        results = self._evaluate(session, WITHIN, places, before)
        return {name: result for (name, *_), result in results.items()}

    def after(self, session: StageSession, *, inherited: bool) -> None:
        """Each set in both ways of playing after a phase, and wrong texts on one of them; see `within`."""
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
        entry, config = self._settings.entry, self._settings.evaluation
        most, seed = (config.report_games, REPORT_SEED) if when == AFTER else (config.selection_games, SELECTION_SEED)
        results: dict[Place, Line] = {}
        for name, play, text in places:
            games = most if text == TRUE_MANUAL else entry.evaluation.baseline_games(most)
            where = {"set": name, "when": when, "play": play, "manual": text}
            result = self._known(session, results, (name, play, text)) or self._earlier(before, where, games)
            if result is None:
                stage = self._settings.stage_name(session.stage)
                what = f"seed {self._seed}  {stage} {session.phase.name}: {name}, {play}"
                what = what if text == TRUE_MANUAL else f"{what}, {text}"
                with self._stop.immediate(), self._display.games(what, games) as tell:
                    result = session.evaluate(name, games, seed, play == GREEDY, text, tell).summary()
            results[name, play, text] = result
            self._write({**self._begin(), **where, **result})
        for play in dict.fromkeys(play for _, play, _ in places):
            self._say(session, play, {(name, text): each for (name, how, text), each in results.items() if how == play})
        return results

    def _known(self, session: StageSession, results: dict[Place, Line], place: Place) -> Line | None:
        """The results of a set whose games went the same way."""
        name, *how = place
        for (other, *its), result in results.items():
            if its == how and self._settings.entry.evaluation.same_games(name, other, session.heeds):
                return {**result, PLAYED_AS: other}
        return None

    def _earlier(self, before: list[Line], where: Line, games: int) -> Line | None:
        """The results of the same weights in the same games, as they were written down."""
        wanted, beside = {**where, "games": games}, {*where, *self._begin()}
        for line in before:
            if wanted.items() <= line.items():
                result = {name: value for name, value in line.items() if name not in {*beside, PLAYED_AS}}
                return {**result, PLAYED_IN: line["phase"]}
        return None

    def _say(self, session: StageSession, play: str, results: dict[tuple[str, str], Line]) -> None:
        """One line about a way of playing, for all sets and texts."""
        measure, plan = self._settings.measure(session.stage), self._settings.entry.evaluation
        show = "{:.1%}".format if measure == "win_rate" else "{:.2f}".format
        sets: dict[str, list[str]] = {}
        wrong = []
        games = max(result["games"] for result in results.values())
        for (name, text), result in results.items():
            shown, source, phase = show(result[measure]), result.get(PLAYED_AS), result.get(PLAYED_IN)
            if text != TRUE_MANUAL:
                wrong.append(f"{text} {shown}" + ("" if result["games"] == games else f" in {result['games']:,} games"))
            elif source in sets:
                sets[source].append(name)
            else:
                sets[name] = [f"{name} {shown}" + (f" (as in {phase})" if phase else "")]
        parts = [first + (f" (the same games: {', '.join(same)})" if same else "") for first, *same in sets.values()]
        read = f"; {plan.rules_text or 'manual'} in {plan.reading_set} {', '.join(wrong)}" if wrong else ""
        what = "wins" if measure == "win_rate" else "scores"
        self._display.say(
            f"seed {self._seed} {self._settings.stage_name(session.stage)} {session.phase.name} after "
            f"{self._begin()['steps']:,} steps: {play} play {what}, in {games:,} games each, {', '.join(parts)}{read}"
        )


def lost_games(results: Iterable[Mapping[str, Any]]) -> str:
    """How many games of some results were lost to faults of simulators, in a sentence; "": none."""
    lost = sum(int(each.get(FAULTS, 0)) for each in results if PLAYED_AS not in each and PLAYED_IN not in each)
    return f"{lost:,} games were ended by simulators that died or hung; they count as not won." if lost else ""


def played_once(results: Iterable[Mapping[str, Any]]) -> str:
    """The sets among some results, each with its "set", that were not played, and whose results they have; "": none."""
    sources: dict[str, dict[str, None]] = {}
    for result in results:
        if PLAYED_AS in result:
            sources.setdefault(result[PLAYED_AS], {})[result["set"]] = None
    have = [f"{' and '.join(names)} {'have' if len(names) > 1 else 'has'}" for names in sources.values()]
    return ", ".join(f"{each} the results of {source}" for each, source in zip(have, sources, strict=True))
