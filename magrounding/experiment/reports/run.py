"""`report.md` of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from magrounding.experiment.config import parse_config
from magrounding.experiment.evaluate import ALL, PLAYERS, SILENT, play_missing
from magrounding.experiment.phase import Gate, Promotion
from magrounding.experiment.plan import Plan, Segment
from magrounding.experiment.plots import plot_curves
from magrounding.experiment.results import TEXT, RunResults, read_results
from magrounding.experiment.rows import learns, run_rows, write_rows
from magrounding.experiment.tables import HOW_TO_READ, Cell, Table, code, gap_closed, interval, page, percent, text_of
from magrounding.progress import Display, duration
from magrounding.run_folder import CURVES_FILE, RunFolder
from magrounding.statistics import Statistics
from magrounding.storage import write_atomic
from magrounding.teams.evaluate import FAULTS, GREEDY, PLAYS, TRUE_MANUAL
from magrounding.teams.lineup import ORACLE, RANDOM

_EMPTY = (None, "", {}, [], ())

Place = tuple[str, str, str]
"""Stage, phase, evaluation set."""


def write_report(folder: RunFolder, display: Display | None = None) -> None:
    """Write the report and the curves of a run folder, finished or not, after the games of others that it lacks."""
    play_missing(parse_config(folder.config()).resolve(), folder, display)
    results = read_results(folder)
    write_atomic(folder.curves, plot_curves(results))
    write_rows(folder.report, run_rows(results), **learns(results.settings), command=results.config.get("command"))
    write_atomic(folder.report, report(results))


def report(run: RunResults) -> str:
    """The report as Markdown."""
    settings, reading = run.settings, reading_table(run).markdown()
    team = f"{settings.agents} agent{'s' if settings.agents > 1 else ''} of `{settings.agent}`"
    return page(
        f"# {settings.env}: {team}, preset `{settings.preset}`",
        settings.about,
        HOW_TO_READ,
        "## Results",
        f"Better way of playing on training games: **{run.better_play}**. {run.plan.entry.evaluation.note}".strip(),
        results_table(run).markdown(),
        unplayed(run),
        "\n".join(f"* {line['says']}" for line in run.select("gate")),
        f"![learning curves]({CURVES_FILE})",
        reading and f"## Do they read?\n\n{reading}",
        "## Budget",
        budget_table(run).markdown(),
        time_shares(run),
        "## How to repeat it",
        facts(run),
    )


def results_table(run: RunResults) -> Table:
    """Stage × phase × set: the trained team in both ways of playing, other players, and papers."""

    def team(at: Place, metric: str = "") -> Statistics | None:
        return run.after(*at, run.better_play, metric)

    def share(at: Place) -> Cell:
        best, own = run.baseline(at[0], at[2], ORACLE), team(at)
        return percent(own.mean / best.mean) if own is not None and best is not None and best.mean else None

    def papers(at: Place) -> Cell:
        found = [table[at[0], at[2]] for table in (run.published, *run.others) if (at[0], at[2]) in table]
        return "; ".join(f"{text_of(each)} ({each.source})" for each in found) or None

    return Table.of(
        run.reported(),
        {
            **_about(run),
            **{play: lambda at, play=play: run.after(*at, play) for play in PLAYS},
            "95 % interval": lambda at: interval(team(at)),
            "steps a game": lambda at: team(at, "length"),
            **_others(run),
            "share of the oracle": share,
            "gap closed": lambda at: gap_closed(
                team(at), *(run.baseline(at[0], at[2], player) for player in (SILENT, ALL))
            ),
            "papers": papers,
            "facts read": lambda at: team(at, "fact_accuracy"),
        },
    )


def outcome_table(run: RunResults) -> Table:
    """Stage × phase on games that are kept from training: the team, the most likely actions, and other players."""
    return Table.of(
        [at for at in run.reported() if at[2] == run.plan.entry.evaluation.held_out_set(at[0])],
        {**_about(run), f"team, {GREEDY}": lambda at: run.after(*at, GREEDY), **_others(run)},
    )


def _about(run: RunResults) -> dict[str, Callable[[Place], Cell]]:
    return {
        "stage": lambda at: run.plan.stages[at[0]].label,
        "learnt by": lambda at: run.learnt_by(*at[:2]),
        "set": lambda at: at[2],
    }


def _others(run: RunResults) -> dict[str, Callable[[Place], Cell]]:
    return {player: lambda at, player=player: run.baseline(at[0], at[2], player) for player in PLAYERS}


def unplayed(run: RunResults) -> str:
    """The reasons for which sets were not played, a line each; "": all were."""
    reasons = (
        f"* {line['set']} after {run.plan.stages[line['stage']].label} {line['phase']}: {code(line['reason'])}"
        for line in run.select("unplayed")
    )
    return "\n".join(dict.fromkeys(reasons))


def reading_table(run: RunResults) -> Table:
    """Stage × phase: results with the true manual and with wrong ones, in the better way of playing."""
    name, wrong, about = run.plan.entry.evaluation.reading_set, run.plan.wrong_manuals, _about(run)

    def reached(at: Place, manual: str) -> Statistics | None:
        return run.after(*at, run.better_play, manual=manual)

    del about["set"]
    places = ((each.stage.name, each.phase.name, name) for each in run.plan.segments)
    return Table.of(
        [at for at in places if wrong and reached(at, wrong[-1]) is not None],
        {
            **about,
            **{f"manual: {each}": lambda at, each=each: reached(at, each) for each in (TRUE_MANUAL, *wrong)},
            RANDOM: _others(run)[RANDOM],
        },
    )


def budget_table(run: RunResults) -> Table:
    """Stage × phase: what it was allowed and what it took, averaged over seeds."""

    def took(metric: str, show: Callable[[float], str] = "{:,.0f}".format) -> Callable[[Segment], Cell]:
        return lambda at: (found := run.took(at.stage.name, at.phase.name, metric)) and show(found.mean)

    return Table.of(
        run.plan.segments,
        {
            "stage": lambda at: at.stage.label,
            "phase": lambda at: at.phase.name,
            "ends": lambda at: rule_text(at.phase.until),
            "steps": took("steps"),
            "weights of": took("best_steps"),
            "training": took("phase_seconds", duration),
            "training since the start": took("training_seconds", duration),
        },
    )


def plan_table(plan: Plan, seconds_per_step: Callable[[Segment], float]) -> Table:
    """Stage × phase: what a run is about to do, and the hours of one seed."""

    def gate(at: Segment) -> Cell:
        asked = at.phase.gate
        return f"{percent(asked.win_rate)} wins, {percent(asked.reading)} of reading" if asked != Gate() else None

    def hours(at: Segment) -> Cell:
        return at.phase.until.steps and f"{at.phase.until.steps * seconds_per_step(at) / 3600:.2f}"

    return Table.of(
        plan.segments,
        {
            "stage": lambda at: at.stage.label,
            "phase": lambda at: at.phase.name,
            "learner": lambda at: at.phase.learner.algorithm,
            "ends": lambda at: rule_text(at.phase.until),
            "gate": gate,
            "hours": hours,
        },
    )


def rule_text(rule: Promotion) -> str:
    """A promotion rule in words."""
    conditions = []
    if rule.steps is not None:
        conditions.append(f"after {rule.steps:,} steps")
    if rule.win_rate is not None:
        conditions.append(f"at {percent(rule.win_rate)} wins over {rule.window:,} training games")
    if rule.reading is not None:
        conditions.append(f"at {percent(rule.reading)} more wins with true than with reassigned manuals")
    text = (" or " if rule.rule == "any" else " and ").join(conditions)
    return text if rule.minutes is None else f"{text}, at the latest after {rule.minutes:g} min"


def time_shares(run: RunResults) -> str:
    """The shares of the wall time by what it was spent on, in a sentence."""
    spent: Counter[str] = Counter()
    for seed in run.settings.seeds:
        for line in run.select("phase", seed)[-1:]:
            spent.update(line["spent"])
    total = spent.total()
    shares = ", ".join(f"{name} {percent(seconds / total)}" for name, seconds in spent.items() if total)
    return f"Wall time {duration(total)}: {shares}." if total else ""


def facts(run: RunResults) -> str:
    """Everything that decides the numbers: the configuration by its own names, an entry a line."""
    settings = {name: value for name, value in run.settings.as_dict().items() if name not in ("about", "phases")}
    phases = {
        f"{each.stage.label} {each.phase.name}": {
            "num_envs": each.phase.num_envs,
            **each.phase.env_options,
            "frozen": each.phase.frozen,
            **each.phase.learner.as_dict(),
        }
        for each in run.plan.segments
    }
    entries = {
        "command": code(run.config.get("command") or "run_curriculum"),
        **{name: run.config.get(name) for name in (TEXT, "demonstrators")},
        **settings,
        **phases,
        "faults": _faults(run),
        "versions": run.config.get("versions"),
    }
    return "\n".join(f"* {name}: {_flat(value)}" for name, value in entries.items() if value not in _EMPTY)


def _flat(value: Any) -> str:
    """A value in a line; what is empty in a dictionary is left out."""
    if isinstance(value, Mapping):
        known = {name: each for name, each in value.items() if each not in _EMPTY}
        return ", ".join(f"{name} {_flat(each)}" for name, each in known.items())
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _faults(run: RunResults) -> str:
    """Workers of simulators that died or hung in training and in evaluations."""
    workers = run.select("fault")
    lost = sum(len(line["rows"]) for line in workers)
    trained = f"{len(workers)} workers of simulators were replaced, {lost} games lost to it" if workers else ""
    others = [summary for of_set in run.baselines.values() for summary in of_set.values()]
    return "; ".join(filter(None, (trained, lost_games([*run.select("evaluation"), *others]))))


def lost_games(results: Iterable[Mapping[str, Any]]) -> str:
    """The number of games lost to faults of simulators, in a sentence; "": none."""
    lost = sum(int(each.get(FAULTS, 0)) for each in results)
    return f"{lost:,} games were ended by simulators that died or hung; they count as not won." if lost else ""


def listed(options: Mapping[str, Any]) -> str:
    """Options and their values in a line."""
    return ", ".join(f"{name} {value}" for name, value in options.items())
