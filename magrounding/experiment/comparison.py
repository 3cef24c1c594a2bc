"""Several runs side by side: their names say what differs between them, the numbers what it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from magrounding.errors import ConfigurationError
from magrounding.experiment.evaluations import AFTER
from magrounding.experiment.markdown import code, shown, table
from magrounding.experiment.plots import COLOURS, finish, make_figure, plain, scale_of
from magrounding.experiment.progress import duration
from magrounding.experiment.report import interval, shown_as, spread, what_is_measured
from magrounding.experiment.results import TEXT, RunResults
from magrounding.experiment.statistics import METHOD, Statistics, over_seeds
from magrounding.play.evaluate import MANUALS, SAMPLED, TRUE_MANUAL
from magrounding.play.lineup import ORACLE, RANDOM
from magrounding.registry import agent_entry
from magrounding.storage import json_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from magrounding.experiment.plots import Scale

Runs = Mapping[str, RunResults]
"""Name → run, in the order of the comparison."""


def check_comparable(runs: Runs) -> None:
    """Raise a ConfigurationError where runs are not of one environment and one number of agents."""
    worlds = {(run.settings.env, run.settings.agents) for run in runs.values()}
    if len(runs) < 2 or len(worlds) > 1:
        what = ", ".join(f"{name}: {r.settings.agents} × {r.settings.env}" for name, r in runs.items())
        raise ConfigurationError(f"a comparison takes two runs or more of one environment and team, got {what}")


def shared_stages(runs: Runs) -> list[str]:
    """Stages that two or more of the runs were evaluated after, in the order of the curriculum."""
    reached = [stage for run in runs.values() for stage in {row[0] for row in _rows(run)}]
    shared = [stage for stage in next(iter(runs.values())).settings.entry.stages if reached.count(stage) > 1]
    if not shared:
        raise ConfigurationError(f"these runs share no stage: {', '.join(sorted(set(reached))) or 'none is finished'}")
    return shared


def comparison(runs: Runs, picture: str) -> str:
    """The comparison as Markdown; `picture` is the name of its figure.

    Raises:
        ConfigurationError: runs that have nothing in common, or too few of them.
    """
    check_comparable(runs)
    first = next(iter(runs.values())).settings
    what = what_is_measured(first, shared_stages(runs))
    agents = f"{first.agents} agent{'s' if first.agents > 1 else ''}"
    sections = [
        f"# {first.env}, {agents}: " + ", ".join(map(shown, runs)),
        f"{what} after the last phase of each stage, in the way of playing (greedy or sampled) in which each run "
        "is better on training games; ± is the standard deviation over seeds. "
        f"{METHOD} {met_games(runs)} The wrong manuals were read in the games of "
        f"`{first.entry.evaluation.reading_set}`.",
        *(f"## {first.stage_name(stage)}\n\n{stage_table(runs, stage)}" for stage in shared_stages(runs)),
        f"![{what.lower()} during training]({picture})",
        about_curves(runs.values()),
        "## Runs",
        table(
            ("run", "agent", "preset", "seeds", "learnt by", "command"),
            [
                (
                    shown(name),
                    f"`{run.settings.agent}`",
                    f"`{run.settings.preset}`",
                    str(len(run.settings.seeds)),
                    "; ".join(dict.fromkeys(run.learnt_by(stage, phase) for stage, phase, _ in run.reported())),
                    code(run.config.get("command") or "run_curriculum"),
                )
                for name, run in runs.items()
            ],
        ),
    ]
    return "\n\n".join(sections) + "\n"


def met_games(runs: Runs) -> str:
    """Whether all runs met the same games, in a sentence or two: how many, of which options and texts."""
    counts = {name: sorted(_games(run)) for name, run in runs.items()}
    options = {name: _options_of_games(run, runs.values()) for name, run in runs.items()}
    texts = {name: run.config.get(TEXT, "") for name, run in runs.items()}
    said = []
    if len({tuple(each) for each in counts.values()}) > 1:
        each = ", ".join(f"{shown(name)} {' or '.join(f'{games:,}' for games in met)}" for name, met in counts.items())
        said.append(f"their numbers on each set differ: {each}")
    for option in dict.fromkeys(option for found in options.values() for option in found):
        values = {name: found.get(option) for name, found in options.items()}
        if len({json_text(value) for value in values.values()}) > 1:
            said.append(f"{option} is {', '.join(f'{value} for {shown(name)}' for name, value in values.items())}")
    if len(set(texts.values())) > 1:
        said.append("their texts are " + ", ".join(f"{text or 'not told'} ({shown(n)})" for n, text in texts.items()))
    if not said:
        each = " or ".join(f"{games:,}" for games in next(iter(counts.values())))
        return f"Every run met the same games, {each} on each set."
    return f"The runs did not meet the same games: {'; '.join(said)}."


def _games(run: RunResults) -> set[int]:
    """How many games evaluations after phases had, those with wrong manuals aside."""
    lines = (run.select("evaluation", seed, when=AFTER, manual=TRUE_MANUAL) for seed in run.settings.seeds)
    return {int(line["games"]) for of_seed in lines for line in of_seed if "games" in line}


def _options_of_games(run: RunResults, runs: Iterable[RunResults]) -> dict[str, Any]:
    """Options of a run's games, the environment's own included, but those by which networks are shown more of them."""
    shown_only = {option for each in runs for option in agent_entry(each.settings.agent).env_options}
    options = {**run.settings.entry.options, **run.settings.env_options}
    return {name: value for name, value in options.items() if name not in shown_only}


def about_curves(runs: Iterable[RunResults]) -> str:
    """What the lines of `plot_comparison` are, in a sentence."""
    plays = " or ".join(dict.fromkeys(run.settings.evaluation.selection_play for run in runs))
    return (
        f"Lines are evaluations during training ({plays} play, by which weights are chosen; the mean over seeds); "
        "dotted lines are training games."
    )


def stage_table(runs: Runs, stage: str) -> str:
    """Run × evaluation set and wrong manual, with the cost; random and oracle below."""
    settings = next(iter(runs.values())).settings
    plan, show = settings.entry.evaluation, shown_as(settings.measure(stage))
    found = {name: [row for row in _rows(run) if row[0] == stage] for name, run in runs.items()}
    sets = [name for name in plan.sets_of(stage) if any(row[2] == name for rows in found.values() for row in rows)]
    wrong = [m for m in MANUALS if m != TRUE_MANUAL and any(m in run.settings.wrong_manuals for run in runs.values())]
    lines: list[list[str]] = []
    for name, rows in found.items():
        run = runs[name]
        if not rows:
            continue
        phase = rows[-1][1]
        reached = [run.final(stage, phase, which, run.better_play) for which in sets]
        misled = [
            spread(run.final(stage, phase, plan.reading_set, run.better_play, manual=manual), show=show)
            for manual in wrong
        ]
        known = [interval(each, show) for each in reached]
        lines.append([shown(name), *(spread(each, show=show) for each in reached), *known, *misled, *_cost(run, stage)])
    for who in (RANDOM, ORACLE):
        played = [_baseline(runs, stage, which, who) for which in sets]
        if any(each is not None for each in played):
            known = [interval(each, show) for each in played]
            lines.append([who, *(spread(each, show=show) for each in played), *known, *["–"] * len(wrong), "", ""])
    heads = ("run", *sets, *(f"{name}: interval" for name in sets), *(f"manual: {m}" for m in wrong))
    return table((*heads, "environment steps", "training"), lines)


def _rows(run: RunResults) -> list[tuple[str, str, str]]:
    """(stage, phase, set) of what was measured after the last phase of each stage."""
    last = {stage: phase.name for stage, phase in run.settings.walk()}
    return [row for row in run.reported() if row[1] == last[row[0]] and run.final(*row, SAMPLED) is not None]


def _cost(run: RunResults, stage: str) -> list[str]:
    """Steps and time of a stage, all its phases, averaged over seeds."""
    ends = [line for seed in run.settings.seeds for line in run.select("phase", seed, stage=stage)]
    seeds = len({line["seed"] for line in ends}) or 1
    steps, seconds = (sum(line[name] for line in ends) / seeds for name in ("steps", "phase_seconds"))
    return [f"{steps:,.0f}", duration(seconds)]


def _baseline(runs: Runs, stage: str, which: str, who: str) -> Statistics | None:
    """What random or the oracle reached: in the run that let it play most games, as those of others are among them."""
    found = [(run.baselines.get(f"{stage}/{which}", {}).get(who), run.settings.measure(stage)) for run in runs.values()]
    played = [over_seeds([summary], measure) for summary, measure in found if summary is not None]
    return max(filter(None, played), key=lambda each: each.games, default=None)


def plot_comparison(runs: Runs) -> bytes:
    """A PNG with one panel for each stage: evaluations during training, on the set that none learns from."""
    from matplotlib.lines import Line2D

    check_comparable(runs)
    stages = shared_stages(runs)
    settings = next(iter(runs.values())).settings
    scales = [scale_of(settings, stage) for stage in stages]
    figure, panels = make_figure(len(stages), alike=len(set(scales)) == 1)
    for stage, panel in zip(stages, panels, strict=True):
        for k, (name, run) in enumerate(runs.items()):
            _draw(run, stage, name, COLOURS[k % len(COLOURS)], panel)
        panel.set_title(plain(settings.stage_name(stage)), fontsize=11)
        panel.add_line(Line2D([], [], color="0.35", linestyle=":", linewidth=1.2, label="training games"))
    return finish(figure, panels, scales)


def _draw(run: RunResults, stage: str, name: str, colour: str, panel: Axes) -> None:
    scale, windowed = scale_of(run.settings, stage), run.settings.windowed(stage)
    held_out = [which for which in run.settings.evaluation.watched_sets if which != "train"]
    points: dict[int, dict[int, float]] = {}  # steps → seed → win rate or score
    games: dict[int, dict[int, float]] = {}
    for seed in run.settings.seeds:
        start = run.start_of(seed, stage)
        for line in run.select("train", seed, stage=stage):
            if windowed in line:
                games.setdefault(line["total_steps"] - start, {})[seed] = line[windowed]
        for which in held_out[-1:]:
            # A phase ends with an evaluation of its best weights: a point of the curve only where there is no other.
            play = run.settings.evaluation.selection_play
            for line in run.select("evaluation", seed, stage=stage, set=which, play=play, manual=TRUE_MANUAL):
                points.setdefault(line["total_steps"] - start, {}).setdefault(seed, line[scale.quantity])
    _line(panel, games, scale, color=colour, linestyle=":", linewidth=1.2)
    label = plain(f"{name} ({held_out[-1]})" if held_out else name)
    _line(panel, points, scale, color=colour, marker="D", markersize=4, linewidth=1.6, label=label)


def _line(panel: Axes, values: Mapping[int, Mapping[int, float]], scale: Scale, **style: Any) -> None:
    """The mean over seeds at every step that all of them have."""
    full = max((len(v) for v in values.values()), default=0)
    steps = sorted(step for step, v in values.items() if len(v) == full)
    if steps:
        panel.plot(steps, [scale.factor * sum(values[step].values()) / full for step in steps], **style)
