"""`zero_shot.md` and `zero_shot.json`: tables of an evaluation, beside random, oracle and the papers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from magrounding.experiment.baselines import Summary
from magrounding.experiment.evaluations import PLAYED_AS, lost_games, played_once
from magrounding.experiment.markdown import code, shown, table
from magrounding.experiment.report import interval, percent, published, shown_as, spread
from magrounding.experiment.results import TEXT
from magrounding.experiment.statistics import METHOD, over_seeds
from magrounding.experiment.zero_shot import Score, ZeroShot
from magrounding.play.loading import CONFIG_FILE
from magrounding.storage import read_json


def _number(value: float) -> str:
    return f"{value:.2f}"


MEASURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "return": ("return", _number),
    "length": ("steps", _number),
    "steps_to_win": ("steps to win", _number),
    "fact_accuracy": ("facts read", percent),
    "subgoal_conflicts": ("subgoal conflicts", percent),
    "mask_coverage": ("mask coverage", percent),
    "mask_conflicts": ("mask conflicts", percent),
    "modelling_accuracy": ("modelling accuracy", percent),
}
"""Entry of a summary → its column and how it is printed; the win rate has columns of its own."""

_LEGEND = {
    "return": "Return is an agent's mean sum of rewards.",
    "fact_accuracy": "Facts read: of what manuals say, neither denied nor taken back, the share that the networks "
    "relate to the right name.",
    "subgoal_conflicts": "Subgoal conflicts: of the pairs of agents who both pursue something in a step, the share who "
    "pursue the same entity, judged by their moves (`magrounding.play.pursuit`).",
    "mask_coverage": "Mask coverage and conflicts: the share of the entities in sight that an agent takes for itself, "
    "and that another takes too.",
    "modelling_accuracy": "Modelling accuracy: how often what an agent held for another's most likely action was what "
    "that one did.",
}

_CROSS_PLAY = (
    "Teams of agents who were not trained together: one agent of the first run, or seed, and the rest of the second's, "
    "in each place in turn. ± is over pairs of seeds."
)


def zero_shot_report(results: ZeroShot, picture: str, command: str) -> str:
    """The evaluation as Markdown; `picture` is the name of its figure, `command` what repeats it."""
    first = results.contenders[0]
    agents = f"{first.settings.agents} agent{'s' if first.settings.agents > 1 else ''}"
    games = ", ".join(f"{name} {value}" for name, value in first.options().items())
    note = first.settings.entry.evaluation.note
    sections = [
        f"# Zero-shot: {first.title}, {agents}",
        f"{results.episodes:,} games on each set, the same for all players ({games}, then the set's own options). "
        "Greedy play takes the most likely action, sampled play draws one. ± is the standard deviation over seeds. "
        f"{METHOD} {note}".strip(),
        *([f"Text: {results.text}."] if results.text else []),
        tables(results),
        f"![win rates]({picture})",
        "Points are interquartile means with their intervals, small ones single seeds, stars the paper's main result.",
        "## Runs",
        _runs(results),
        f"Command: {code(command)}",
    ]
    return "\n\n".join(sections) + "\n"


def _same_elsewhere(results: ZeroShot) -> str:
    """Which sets that were not asked for would give a player the results of one that was."""
    said = []
    for who, sets in results.alike.items():
        for name, others in sets.items():
            if unasked := [other for other in others if other not in results.sets]:
                said.append(f"{shown(who)}: {', '.join(unasked)} as {name}.")
    return " ".join(("Some sets that were not played here look the same to a player.", *said)) if said else ""


def _played_once(results: ZeroShot) -> str:
    """Who did not play which sets, as their results are those of another."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for score in results.scores:
        rows.setdefault(score.who, []).extend({"set": score.evaluation_set, **each} for each in score.by_seed.values())
    for name in results.sets:
        for who, summary in results.baselines[name].items():
            rows.setdefault(who, []).append({"set": name, **summary})
    stated = [f"{who}: {what}." for who, of_who in rows.items() if (what := played_once(of_who))]
    return " ".join(("Some sets look the same to a player and were played once.", *stated)) if stated else ""


def tables(results: ZeroShot) -> str:
    """Win rates of all on all sets, everything else set by set, and cross-play."""
    legend = " ".join(_LEGEND[name] for name in _known(results, _LEGEND))
    sections = ["## Scores" if results.measure == "score" else "## Win rates", overview(results)]
    if results.together:
        sections += ["## Cross-play", _CROSS_PLAY, cross_table(results)]
    for name in results.sets:
        sections += [f"## {name}", set_table(results, name)]
    played = [summary for score in (*results.scores, *results.together) for summary in score.by_seed.values()]
    played += [summary for of_set in results.baselines.values() for summary in of_set.values()]
    notes = legend, _played_once(results), _same_elsewhere(results), lost_games(played)
    return "\n\n".join((*sections, *filter(None, notes)))


def overview(results: ZeroShot) -> str:
    """Who and how × set: win rates, or scores."""
    sets, measure = results.sets, results.measure
    show = shown_as(measure)
    rows = [
        (shown(who), play, *(spread(results.score(who, name, play).over_seeds(measure), show=show) for name in sets))
        for who in _names(results)
        for play in results.plays
    ]
    rows += [(who, "", *(show(results.baselines[name][who][measure]) for name in sets)) for who in _others(results)]
    for source in dict.fromkeys(paper.source for name in sets for paper in results.published[name]):
        found = {name: published(paper) for name in sets for paper in results.published[name] if paper.source == source}
        rows.append((f"paper: {source}", "", *(found.get(name, "–") for name in sets)))
    return table(("run", "play", *sets), rows)


def set_table(results: ZeroShot, evaluation_set: str) -> str:
    """Who and how × measure, on one set."""
    measures = [name for name in _known(results, MEASURES) if name != results.measure]
    show = shown_as(results.measure)
    rows = []
    for who in _names(results):
        for play in results.plays:
            score = results.score(who, evaluation_set, play)
            reached = score.over_seeds(results.measure)
            cells = [spread(score.over_seeds(name), show=MEASURES[name][1]) for name in measures]
            rows.append((shown(who), play, spread(reached, show=show), interval(reached, show), *cells))
    for who, summary in results.baselines[evaluation_set].items():
        cells = [MEASURES[name][1](summary[name]) if name in summary else "–" for name in measures]
        known = interval(over_seeds([summary], results.measure), show)
        rows.append((who, "", show(summary[results.measure]), known, *cells))
    rows += [
        (f"paper: {paper.source}", "", published(paper), *["–"] * (1 + len(measures)))
        for paper in results.published[evaluation_set]
    ]
    heads = (
        "run",
        "play",
        results.measure.replace("_", " "),
        "IQM, 95 % interval",
        *(MEASURES[name][0] for name in measures),
    )
    return table(heads, rows)


def cross_table(results: ZeroShot) -> str:
    """Set × play: what mixed teams win, beside each run's own teams."""
    places = [f"win_rate_agent_{i}" for i in range(results.contenders[0].settings.agents)]
    rows = []
    for score in results.together:
        own = [
            spread(results.score(who, score.evaluation_set, score.play).over_seeds("win_rate"))
            for who in dict.fromkeys(score.members)
        ]
        mixed = [spread(score.over_seeds(name)) for name in ("win_rate", *places)]
        rows.append((shown(score.who), score.evaluation_set, score.play, ", ".join(own), *mixed))
    heads = (
        "who",
        "set",
        "play",
        "each with its own",
        "together",
        *(f"agent {i} of the first" for i in range(len(places))),
    )
    return table(heads, rows)


def to_json(results: ZeroShot, command: str, versions: dict[str, str]) -> dict[str, Any]:
    """Everything that was found, and what it takes to find it again."""
    first = results.contenders[0]

    def of(scores: Iterable[Score], name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for score in scores:
            if score.evaluation_set == name:
                found.setdefault(score.who, {})[score.play] = {
                    "seeds": dict(score.by_seed),
                    "statistics": _statistics(score),
                }
        return found

    return {
        "env": first.settings.env,
        "agents": first.settings.agents,
        "stage": first.stage,
        "episodes": results.episodes,
        "text": results.text,
        "command": command,
        "versions": versions,
        "runs": {who.name: {"folder": str(who.folder), **who.settings.as_dict()} for who in results.contenders},
        "sets": {
            name: {
                "options": first.options(name),
                "runs": of(results.scores, name),
                "cross_play": of(results.together, name),
                "baselines": dict(results.baselines[name]),
                "published": [paper._asdict() for paper in results.published[name]],
            }
            for name in results.sets
        },
    }


def _runs(results: ZeroShot) -> str:
    """What the contenders are."""
    rows = []
    for who in results.contenders:
        settings = who.settings
        learnt = settings.learnt_by(who.stage, settings.of_stage(who.stage)[-1].name)
        trained = ", ".join(f"{name} {value}" for name, value in settings.env_options.items())
        seeds = ", ".join(map(str, who.teams))
        config = read_json(who.folder / CONFIG_FILE)
        command, text = config.get("command") or "run_curriculum", config.get(TEXT)
        trained = ", ".join(filter(None, (trained, f"text: {text}" if text else "")))
        rows.append((shown(who.name), f"`{settings.agent}`", learnt, seeds, trained, code(command)))
    return table(("run", "agent", "learnt by", "seeds", "trained with", "command"), rows)


def _statistics(score: Score) -> dict[str, dict[str, float | None]]:
    """Measure → statistics over seeds."""
    names = dict.fromkeys(
        name for summary in score.by_seed.values() for name in summary if name not in ("games", PLAYED_AS)
    )
    found = {name: score.over_seeds(name) for name in names}
    return {name: statistics.to_dict() for name, statistics in found.items() if statistics is not None}


def _names(results: ZeroShot) -> list[str]:
    return list(dict.fromkeys(score.who for score in (*results.scores, *results.together)))


def _others(results: ZeroShot) -> list[str]:
    return list(dict.fromkeys(who for of_set in results.baselines.values() for who in of_set))


def _known(results: ZeroShot, measures: Iterable[str]) -> list[str]:
    """Measures that any summary has."""
    summaries: list[Summary] = [s for score in (*results.scores, *results.together) for s in score.by_seed.values()]
    return [name for name in measures if any(name in summary for summary in summaries)]
