"""`comparison.md`, `comparison.csv` and `comparison.png`: several runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from magrounding.errors import ConfigurationError
from magrounding.experiment.plots import plot_comparison
from magrounding.experiment.results import TEXT, RunResults
from magrounding.experiment.tables import AFTER, HOW_TO_READ, Summary, Table, code, interval, page, shown
from magrounding.experiment.zero_shot import check_same_world
from magrounding.progress import duration
from magrounding.registry import agent_entry
from magrounding.statistics import Statistics
from magrounding.storage import json_text
from magrounding.teams.evaluate import MANUALS, SAMPLED, TRUE_MANUAL
from magrounding.teams.lineup import ORACLE, RANDOM

Runs = Mapping[str, RunResults]
"""Name → run, in the order of the comparison."""
Key = tuple[str, bool]
"""Name of a run or of another player, and whether it is a run."""


def shared_stages(runs: Runs) -> list[str]:
    """Stages that two or more of the runs were evaluated after, in the order of the curriculum.

    Raises:
        ConfigurationError: runs of several environments or numbers of agents, too few of them, or without such a stage.
    """
    check_same_world({name: run.settings for name, run in runs.items()})
    reached = {name: [stage for stage in run.settings.stages if _sets(run, stage)] for name, run in runs.items()}
    stages = dict.fromkeys(stage for run in runs.values() for stage in run.plan.entry.stages)
    shared = [stage for stage in stages if sum(stage in found for found in reached.values()) > 1]
    if not shared:
        at = "; ".join(f"{name}: {', '.join(found) or 'none finished'}" for name, found in reached.items())
        raise ConfigurationError(f"a comparison takes two runs or more that share a stage, got {at}")
    return shared


def comparison(runs: Runs, picture: str) -> str:
    """The comparison as Markdown; `picture` is the name of its figure. ConfigurationError as of `shared_stages`."""
    stages, first = shared_stages(runs), next(iter(runs.values())).settings
    known = {name: stage.label for run in runs.values() for name, stage in run.plan.stages.items()}
    agents = f"{first.agents} agent{'s' if first.agents > 1 else ''}"
    return page(
        f"# {first.env}, {agents}: {', '.join(map(shown, runs))}",
        HOW_TO_READ,
        met_games(runs),
        *(part for stage in stages for part in (f"## {known[stage]}", stage_table(runs, stage).markdown())),
        f"![learning curves]({picture})",
        about_curves(runs.values()),
        "\n".join(f"* {shown(name)}, {line['says']}" for name, run in runs.items() for line in run.select("gate")),
        "## Runs",
        Table.of(
            runs,
            {
                "run": shown,
                "agent": lambda name: f"`{runs[name].settings.agent}`",
                "preset": lambda name: f"`{runs[name].settings.preset}`",
                "seeds": lambda name: len(runs[name].settings.seeds),
                "learnt by": lambda name: "; ".join(
                    dict.fromkeys(runs[name].learnt_by(stage, phase) for stage, phase, _ in runs[name].reported())
                ),
                "command": lambda name: code(runs[name].config.get("command") or "run_curriculum"),
            },
        ).markdown(),
    )


def numbers(runs: Runs) -> Table:
    """Win rates and scores after every phase, with their statistics."""
    after = (row._replace(run=name) for name, run in runs.items() for row in run.measured if row.when == AFTER)
    by = ("run", "stage", "phase", "set", "play", "manual", "player", "metric")
    return Summary((row for row in after if row.metric in ("win_rate", "score")), by).table()


def met_games(runs: Runs) -> str:
    """Describe the games that the runs met, and whether they are the same: number, options, texts."""
    shown_only = {option for run in runs.values() for option in agent_entry(run.settings.agent).env_options}
    met = {
        name: {
            "games on each set": " or ".join(f"{games:,}" for games in _games(run)),
            **{
                option: value
                for option, value in {**run.plan.entry.options, **run.settings.env_options}.items()
                if option not in shown_only
            },
            "text": run.config.get(TEXT) or "not stated",
        }
        for name, run in runs.items()
    }
    options = dict.fromkeys(option for of_run in met.values() for option in of_run)
    differ = [option for option in options if len({json_text(of_run.get(option)) for of_run in met.values()}) > 1]
    if not differ:
        return f"Every run met the same games, {next(iter(met.values()))['games on each set']} on each set."
    columns = {shown(name): lambda option, of_run=of_run: str(of_run.get(option)) for name, of_run in met.items()}
    return f"The runs did not meet the same games:\n\n{Table.of(differ, {'': str, **columns}).markdown()}"


def _games(run: RunResults) -> list[int]:
    """The numbers of games of evaluations after phases, those with wrong manuals aside."""
    rows = (row for row in run.measured if row.when == AFTER and row.manual == TRUE_MANUAL and row.play)
    return sorted({row.games for row in rows} - {0})


def about_curves(runs: Iterable[RunResults]) -> str:
    """The way of playing in the evaluations of `plot_comparison`, in a sentence."""
    plays = " or ".join(dict.fromkeys(run.settings.evaluation.selection_play for run in runs))
    return f"Lines are evaluations during training ({plays} play, mean over seeds); dotted lines are training games."


def stage_table(runs: Runs, stage: str) -> Table:
    """Run × evaluation set and wrong manual, with the cost; other players below."""
    plan = next(iter(runs.values())).plan.entry.evaluation
    own = [name for name, run in runs.items() if _sets(run, stage)]
    sets = [name for name in plan.sets_of(stage) if any(name in _sets(runs[each], stage) for each in own)]
    wrong = [m for m in MANUALS if m != TRUE_MANUAL and any(m in run.plan.wrong_manuals for run in runs.values())]

    def reached(key: Key, name: str, manual: str = TRUE_MANUAL) -> Statistics | None:
        who, is_run = key
        if not is_run:
            return None if manual != TRUE_MANUAL else _baseline(runs, stage, name, who)
        phase = runs[who].settings.of_stage(stage)[-1].name
        return runs[who].after(stage, phase, name, runs[who].better_play, manual=manual)

    def cost(metric: str, show: Callable[[float], str]) -> Callable[[Key], str]:
        return lambda key: show(_cost(runs[key[0]], stage, metric)) if key[1] else ""

    others = [who for who in (RANDOM, ORACLE) if any(_baseline(runs, stage, name, who) for name in sets)]
    return Table.of(
        [*((name, True) for name in own), *((who, False) for who in others)],
        {
            "run": lambda key: shown(key[0]),
            **{name: lambda key, name=name: reached(key, name) for name in sets},
            **{f"{name}: interval": lambda key, name=name: interval(reached(key, name)) for name in sets},
            **{f"manual: {m}": lambda key, m=m: reached(key, plan.reading_set, m) for m in wrong},
            "environment steps": cost("steps", "{:,.0f}".format),
            "training": cost("phase_seconds", duration),
        },
    )


def _sets(run: RunResults, stage: str) -> list[str]:
    """The sets on which a run was evaluated after the last phase of a stage."""
    last = run.settings.of_stage(stage)[-1].name if stage in run.settings.stages else ""
    places = [place for place in run.reported() if place[:2] == (stage, last)]
    return [place[2] for place in places if run.after(*place, SAMPLED) is not None]


def _cost(run: RunResults, stage: str, metric: str) -> float:
    """Steps or seconds of a stage, all its phases, averaged over seeds."""
    took = [run.took(stage, phase.name, metric) for phase in run.settings.of_stage(stage)]
    seeds = max((each.seeds for each in took if each is not None), default=1)
    return sum(each.mean * each.seeds for each in took if each is not None) / seeds


def _baseline(runs: Runs, stage: str, name: str, who: str) -> Statistics | None:
    """The result of another player, of the run that let it play most games: those of others are among them."""
    played = [run.baseline(stage, name, who) for run in runs.values() if stage in run.settings.stages]
    return max(filter(None, played), key=lambda each: each.games, default=None)


def plot(runs: Runs) -> bytes:
    """The learning curves of the stages that runs share, as a PNG; ConfigurationError as of `shared_stages`."""
    return plot_comparison(runs, shared_stages(runs))
