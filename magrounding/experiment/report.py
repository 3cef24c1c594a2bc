"""`report.md`: what was run, what it cost, and how often it wins, beside the floor, the ceiling and the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from magrounding.envs.published import PublishedResult
from magrounding.experiment.baselines import ORACLE, OVERLAP, RANDOM
from magrounding.experiment.config import RunConfig
from magrounding.experiment.evaluations import AFTER, lost_games, played_once
from magrounding.experiment.markdown import code, shown, table
from magrounding.experiment.phase import Promotion
from magrounding.experiment.plots import plot_curves
from magrounding.experiment.progress import duration
from magrounding.experiment.results import TEXT, RunResults, read_results
from magrounding.experiment.statistics import METHOD, Statistics
from magrounding.play.evaluate import OTHER_GAME, PLAYS, REASSIGNED, TRUE_MANUAL
from magrounding.spec import SNAPSHOT
from magrounding.storage import write_atomic
from magrounding.training.clock import TRAINING

REPORT_FILE = "report.md"
CURVES_FILE = "curves.png"


def write_report(folder: Path) -> RunResults:
    """Write `report.md` and `curves.png` of a run folder, finished or not, and return what they are made of."""
    results = read_results(folder)
    write_atomic(folder / CURVES_FILE, plot_curves(results))
    write_atomic(folder / REPORT_FILE, report(results))
    return results


def report(results: RunResults) -> str:
    """The report as Markdown."""
    settings = results.settings
    team = f"{settings.agents} agent{'s' if settings.agents > 1 else ''} of `{settings.agent}`"
    sections = [
        f"# {settings.env}: {team}, preset `{settings.preset}`",
        settings.about,
        "## Results",
        _how_to_read(results),
        results_table(results),
        _sources(results),
        f"![win rates during training]({CURVES_FILE})",
        _reading(results),
        "## Budget",
        budget_table(results),
        time_shares(results),
        "## How to repeat it",
        facts(results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _how_to_read(results: RunResults) -> str:
    one = len(results.settings.seeds) == 1
    spread_note = f"{'There is one seed' if one else '± is the standard deviation over seeds'}. {METHOD}"
    players = {who for summaries in results.baselines.values() for who in summaries}
    shared = f"{'interval, steps and share of the oracle' if ORACLE in players else 'interval and steps'} are of"
    if any(name == "train" for _, _, name in results.reported()):
        favourite = f"**{results.better_play.capitalize()}** play wins more training games over all phases"
        better = f"{favourite}: the columns {shared} {results.better_play} play."
    else:
        better = f"No training games were evaluated, which would choose one of the two: {shared} greedy play."
    names = ", ".join(dict.fromkeys(name for *_, name in _left_out(results)))
    left_out = f"Sets with maps that these networks cannot look at were not played: {names}." if names else ""
    measured = what_is_measured(results.settings, results.settings.stages)
    note = results.settings.entry.evaluation.note
    return (
        f"{measured} of the weights at the end of each phase, or of the best where it was evaluated before its end "
        f"(chosen by {results.settings.evaluation.selection_play} play on games of "
        f"`{results.settings.evaluation.selection_set}` with other seeds), taking the most likely action (greedy) "
        f"or drawing one (sampled). {better} "
        + " ".join(filter(None, (_others(results), note, _played_once(results), left_out, spread_note)))
    )


def _others(results: RunResults) -> str:
    """Who else played these games, and how many of them."""
    played = [(who, summary) for others in results.baselines.values() for who, summary in others.items()]
    names, games = list(dict.fromkeys(who for who, _ in played)), results.settings.evaluation.report_games
    if not names:
        return ""
    fewest = min((summary.get("games", games) for who, summary in played if who == RANDOM), default=games)
    part = f", random {fewest:,} of them" if fewest < games else ""
    rest = "" if ORACLE in names else "; there is no oracle"
    known = results.settings.entry.other_oracles if ORACLE in names else {}
    which = f" The oracle is the one by rules, not `{'`, `'.join(known)}`." if known else ""
    similar = " Overlap takes the choice on offer that is most like the task by its words (tf-idf)."
    played_by = f"{' and '.join(names).capitalize()} played the same games{part}{rest}.{which}"
    return played_by + (similar if OVERLAP in names else "")


def _played_once(results: RunResults) -> str:
    """Which sets were not played, as their results are those of another."""
    lines = [line for seed in results.lines.values() for line in seed if line.get("when") == AFTER]
    others = [
        {"set": place.rsplit("/", 1)[1], **summary}
        for place, found in results.baselines.items()
        for summary in found.values()
    ]
    own = [line for line in lines if line["manual"] == TRUE_MANUAL]
    by = {"agents": played_once(own), "random and oracle": played_once(others)}
    stated = [f"{who.capitalize()}: {what}." for who, what in by.items() if what]
    return " ".join(("Some sets look the same to a player and were played once.", *stated)) if stated else ""


def _left_out(results: RunResults) -> list[tuple[str, str, str]]:
    """(stage, phase, set) of what the networks could not play: it was left out of phases that have ended."""
    lines = [line for seed in results.lines.values() for line in seed]
    ended = {(line["stage"], line["phase"]) for line in lines if line["kind"] == "phase"}
    played = {(line["stage"], line["phase"], line["set"]) for line in lines if line.get("when") == AFTER}
    return [place for place in results.reported() if place[:2] in ended and place not in played]


def _sources(results: RunResults) -> str:
    """What the column of the papers' numbers is about."""
    shown = {(stage, name) for stage, _, name in results.reported()}
    of_source: dict[str, list[str]] = {}
    for place, (*_, source) in results.published.items():
        if place in shown:
            of_source.setdefault(source, []).append(f"{results.settings.stage_name(place[0])} {place[1]}")
    lines = [f"* paper, {', '.join(places)}: {source}" for source, places in of_source.items()]
    lines += [
        f"* another paper, {' '.join(place)}: **{published(result)}**, {result.source}"
        for table in results.others
        for place, result in table.items()
        if place in shown
    ]
    return "\n".join(lines)


def results_table(results: RunResults) -> str:
    """Stage × phase × set: trained team in both ways of playing, interval, those who learnt nothing, paper."""
    rows, better, left_out = [], results.better_play, _left_out(results)
    overlap = any(OVERLAP in others for others in results.baselines.values())
    players = (RANDOM, *[OVERLAP] * overlap, ORACLE)
    named = results.settings.stage_name
    for stage, phase, name in results.reported():
        learnt, measure = results.learnt_by(stage, phase), results.settings.measure(stage)
        show = shown_as(measure)
        wins = {play: results.final(stage, phase, name, play) for play in PLAYS}
        won, length = wins[better], results.final(stage, phase, name, better, "length")
        if won is None or length is None:
            if (stage, phase, name) not in left_out:
                rows.append((named(stage), learnt, name, "not reached", *[""] * (6 + len(players))))
            continue
        others = results.baselines.get(f"{stage}/{name}", {})
        beside = [_beside(others[who], won, show, measure) if who in others else "–" for who in players]
        best = others.get(ORACLE, {}).get(measure)
        share = percent(won.mean / best) if best else "–"
        paper = results.published.get((stage, name))
        known = "–" if paper is None else published(paper)
        both = [spread(wins[play], bold=play == better, show=show) for play in PLAYS]
        facts = results.final(stage, phase, name, better, "fact_accuracy")
        cells = interval(won, show), f"{length.mean:.1f}", *beside, share, known
        rows.append((named(stage), learnt, name, *both, *cells, "" if facts is None else spread(facts)))
    heads = ("stage", "learnt by", "set", *PLAYS, "IQM, 95 % interval", "steps a game")
    heads = (*heads, *players, "share of the oracle", "paper", "facts read")
    if not any(row[-1] for row in rows):  # where games do not tell their facts, or networks cannot tell what they read
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return table(heads, rows)


def _beside(summary: Mapping[str, Any], won: Statistics, show: Callable[[float], str], measure: str) -> str:
    """What another player reached in the games of a row, and how many those were where they were fewer."""
    games = int(summary.get("games") or won.games)
    return show(summary[measure]) + (f" of {games:,}" if games != won.games else "")


def _reading(results: RunResults) -> str:
    rows, kinds = reading_table(results), results.settings.wrong_manuals
    wrong = {REASSIGNED: "one that has the same words in other assignments", OTHER_GAME: "that of another game"}
    what = ", or ".join(wrong[kind] for kind in kinds)
    plan = results.settings.entry.evaluation
    return rows and (
        "## Do they read?\n\n"
        f"The same agents in {_wrong_games(results)} games of `{plan.reading_set}`, with a wrong "
        f"{plan.rules_text or 'manual'}: {what}. Agents that win as often as with the true one do not read.\n\n{rows}"
    )


def _wrong_games(results: RunResults) -> str:
    games = results.settings.evaluation.report_games
    few = results.settings.entry.evaluation.baseline_games(games)
    return "the same" if few == games else f"{few:,} of the same"


def reading_table(results: RunResults) -> str:
    """Stage × phase: win rates with the true manual and with wrong ones, in the better way of playing."""
    settings, rows = results.settings, []
    name, manuals = settings.entry.evaluation.reading_set, (TRUE_MANUAL, *settings.wrong_manuals)
    for stage, phase in settings.walk() if settings.wrong_manuals else ():
        wins = [results.final(stage, phase.name, name, results.better_play, manual=manual) for manual in manuals]
        measure = settings.measure(stage)
        show = shown_as(measure)
        if wins[-1] is not None:
            others = results.baselines.get(f"{stage}/{name}", {})
            floor = show(others["random"][measure]) if "random" in others else "–"
            cells = (spread(each, show=show) for each in wins)
            rows.append((settings.stage_name(stage), results.learnt_by(stage, phase.name), *cells, floor))
    if not rows:
        return ""
    return table(("stage", "learnt by", *(f"manual: {manual}" for manual in manuals), "random"), rows)


def budget_table(results: RunResults) -> str:
    """Stage × phase: what it was allowed and what it took, averaged over seeds."""
    rows = []
    for stage, phase in results.settings.walk():
        where = (results.settings.stage_name(stage), phase.name, rule_text(phase.until))
        lines = [
            line
            for seed in results.settings.seeds
            for line in results.select("phase", seed, stage=stage, phase=phase.name)
        ]
        if lines:
            steps, best, took, so_far = (
                sum(line[name] for line in lines) / len(lines)
                for name in ("steps", "best_steps", "phase_seconds", "training_seconds")
            )
            rows.append((*where, f"{steps:,.0f}", f"{best:,.0f}", duration(took), duration(so_far)))
        else:
            rows.append((*where, "–", "–", "–", "–"))
    steps = "steps learnt from" if results.settings.demonstrations else "environment steps"
    heads = ("stage", "phase", "ends", steps, "weights of", "training", "training since the start")
    return table(heads, rows)


def rule_text(rule: Promotion) -> str:
    """A promotion rule in words."""
    conditions = []
    if rule.steps is not None:
        conditions.append(f"after {rule.steps:,} steps")
    if rule.win_rate is not None:
        conditions.append(f"at {percent(rule.win_rate)} wins over {rule.window:,} training games")
    text = (" or " if rule.rule == "any" else " and ").join(conditions)
    return text if rule.minutes is None else f"{text}, at the latest after {rule.minutes:g} min"


def time_shares(results: RunResults) -> str:
    """Where the wall time went, in a sentence."""
    spent: dict[str, float] = {}
    for seed in results.settings.seeds:
        last = results.select("phase", seed)[-1:]
        for line in last:
            for name, seconds in line["spent"].items():
                spent[name] = spent.get(name, 0.0) + seconds
    total = sum(spent.values())
    if not total:
        return ""
    shares = ", ".join(f"{name} {percent(seconds / total)}" for name, seconds in spent.items())
    loop = sum(spent.get(name, 0.0) for name in TRAINING)
    lasts = [line for seed in results.settings.seeds for line in results.select("train", seed)[-1:]]
    samples = sum(line["total_steps"] for line in lasts) * results.settings.agents
    speed = f" The training loop took {samples / loop:,.0f} agent samples a second." if loop else ""
    return f"Wall time {duration(total)}: {shares}.{speed}"


def facts(results: RunResults) -> str:
    """Everything that has to be equal for the numbers to come again."""
    settings, config = results.settings, results.config
    lines = [
        ("command", code(config.get("command") or "run_curriculum")),
        ("seeds", ", ".join(map(str, settings.seeds))),
        ("environment", _options(settings.env_options)),
        *([(TEXT, results.config[TEXT])] if results.config.get(TEXT) else []),
        ("network", _options(settings.network) or "default options"),
        ("parameters", "one network for all agents" if settings.share_parameters else "each agent its own network"),
        (
            "reward",
            f"{percent(1 - settings.team_reward)} the agent's own, {percent(settings.team_reward)} the team's mean",
        ),
        ("teacher", _teacher(results)),
        ("evaluation", _games(results)),
        *(
            (
                f"{settings.stage_name(stage)} {phase.name}",
                f"{phase.num_envs} games at once, "
                + (f"of {_options(phase.env_options)}, " if phase.env_options else "")
                + (f"without {', '.join(frozen)}, " if (frozen := phase.frozen) else "")
                + _options(phase.learner.as_dict()),
            )
            for stage, phase in settings.walk()
        ),
        *_simulators(results),
        ("versions", _options(config.get("versions", {}))),
    ]
    return "\n".join(f"* {name}: {value}" for name, value in lines)


def _games(results: RunResults) -> str:
    """How many games an evaluation has."""
    settings, plan = results.settings.evaluation, results.settings.entry.evaluation
    games, few, budget = settings.report_games, plan.baseline_games(settings.report_games), results.settings.budget
    whole = f" (not {settings.whole_games:,}), as the budget is {budget:g}" if settings.whole_games else ""
    part = f"; {few:,} by random and with a wrong {plan.rules_text or 'manual'}" if few < games else ""
    within = f", {settings.selection_games:,} within one" if settings.every else ""
    return f"{games:,} games on each set after a phase{whole}{within}{part}"


def _simulators(results: RunResults) -> list[tuple[str, str]]:
    """What a report says of worlds whose games cannot be kept, and of workers that died or hung."""
    settings, lines = results.settings, []
    if any(SNAPSHOT not in settings.describe(stage).capabilities for stage in settings.stages):
        lines.append(("resuming", "these games cannot be saved: where a stopped run goes on, new ones begin"))
    faults = [line for seed in settings.seeds for line in results.select("fault", seed)]
    if faults:
        lost = sum(len(line["rows"]) for line in faults)
        lines.append(("faults", f"{len(faults)} workers of simulators were replaced, {lost} games lost to it"))
    evaluated = [line for seed in settings.seeds for line in results.select("evaluation", seed)]
    others = [summary for of_set in results.baselines.values() for summary in of_set.values()]
    if said := lost_games([*evaluated, *others]):
        lines.append(("faults in evaluations", said))
    return lines


def _teacher(results: RunResults) -> str:
    if not results.settings.imitates:
        return "none: reinforcement alone"
    return teacher(results) + ("" if results.settings.demonstrations else ", in phases of imitation only")


def teacher(results: RunResults) -> str:
    """Whom, or what, the phases of imitation of a run learnt from."""
    if results.settings.demonstrations:
        players = results.config.get("demonstrators", {}).items()
        return "demonstrations from " + ", ".join(
            f"{code(str(path))} (played by {shown(who)})" for path, who in players
        )
    who = "the scripted oracle" if results.settings.entry.oracle else "the environment's scripted expert"
    oracles = {teaching.oracle for _, _, teaching in results.settings.taught()}
    if others := oracles - {""}:
        other = f"the oracle `{', '.join(sorted(others))}`, not the one of the tables"
        who = f"{who} and {other}" if "" in oracles else other
    return who


def published(result: PublishedResult) -> str:
    """As its paper prints it."""
    return percent(result.mean) if result.std is None else f"{percent(result.mean)} ± {percent(result.std)}"


def percent(share: float) -> str:
    """A share as reports print it."""
    return f"{100 * share:.1f} %"


def spread(statistics: Statistics | None, *, bold: bool = False, show: Callable[[float], str] = percent) -> str:
    """Mean and, of several seeds, standard deviation of a share, or of another number that `show` prints."""
    if statistics is None:
        return "–"
    mean = f"**{show(statistics.mean)}**" if bold else show(statistics.mean)
    return mean if statistics.seeds == 1 else f"{mean} ± {show(statistics.std)}"


def interval(statistics: Statistics | None, show: Callable[[float], str] = percent) -> str:
    """Interquartile mean, its interval and the games of each seed; – where nothing is known of an interval."""
    if statistics is None or not statistics.has_interval:
        return "–"
    value = f"{show(statistics.iqm)} [{show(statistics.low)}, {show(statistics.high)}]"
    return f"{value} of {games_of(statistics)}" if statistics.games else value


def games_of(statistics: Statistics) -> str:
    """How many games a number is of: those of each seed."""
    one = f"{statistics.games:,} game{'s' if statistics.games != 1 else ''}"
    return one if statistics.seeds == 1 else f"{statistics.seeds} × {one}"


def what_is_measured(settings: RunConfig, stages: Iterable[str]) -> str:
    """What numbers of some stages are, in the plural, at the beginning of a sentence."""
    what = dict.fromkeys("scores" if settings.measure(stage) == "score" else "win rates" for stage in stages)
    return " and ".join(what).capitalize()


def shown_as(measure: str) -> Callable[[float], str]:
    """How reports print what a run goes by: a win rate as a share, a score as a number."""
    return percent if measure == "win_rate" else "{:.2f}".format


def _options(options: dict | object) -> str:
    return ", ".join(f"{name} {value}" for name, value in dict(options).items())  # type: ignore[call-overload]
