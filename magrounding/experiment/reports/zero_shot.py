"""`zero_shot.md`, `zero_shot.json` and `zero_shot.png`: an evaluation beside other players and the papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from magrounding.experiment.markdown import code, shown
from magrounding.experiment.plots import PLACE_WIDTH, Scale, draw_series, make_figure, plain, save, scale_of
from magrounding.experiment.reports import HOW_TO_READ
from magrounding.experiment.reports.run import listed, lost_games
from magrounding.experiment.results import TEXT
from magrounding.experiment.tables import Cell, Table, interval, page
from magrounding.experiment.zero_shot import PLACE, EvaluatedRun, Result, ZeroShot
from magrounding.play.lineup import ORACLE, RANDOM
from magrounding.play.run_folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {
    "return": "return",
    "length": "steps",
    "steps_to_win": "steps to win",
    "fact_accuracy": "facts read",
    "subgoal_conflicts": "subgoal conflicts",
    "mask_coverage": "mask coverage",
    "mask_conflicts": "mask conflicts",
    "modelling_accuracy": "modelling accuracy",
}
"""Metric → its column, beside the measure's own."""


def zero_shot_report(found: ZeroShot, picture: str, command: str) -> str:
    """The evaluation as Markdown; `picture` is the name of its figure, `command` what repeats it."""
    first = found.runs[0]
    return page(
        f"# Zero-shot: {first.title}, {first.settings.agents} agent{'s' if first.settings.agents > 1 else ''}",
        HOW_TO_READ,
        f"{found.episodes:,} games on each set ({listed(first.options())}).",
        first.settings.entry.evaluation.note,
        f"Text: {found.text}." if found.text else "",
        tables(found),
        f"![results]({picture})",
        "## Runs",
        _runs(found).markdown(),
        f"Command: {code(command)}",
    )


def tables(found: ZeroShot) -> str:
    """Results of all on all sets, mixed teams, and everything else set by set."""
    summaries = [*found.results, *found.together, *(each for of in found.baselines.values() for each in of.values())]
    return page(
        "## Scores" if found.measure == "score" else "## Win rates",
        overview(found).markdown(),
        *(("## Cross-play", cross_table(found).markdown()) if found.together else ()),
        *(part for name in found.sets for part in (f"## {name}", set_table(found, name).markdown())),
        lost_games(summaries),
    ).rstrip("\n")


def _keys(found: ZeroShot) -> list[tuple[str, str]]:
    """Keys of rows: (run or player, way of playing), then ("", source) of papers."""
    papers = dict.fromkeys(paper.source for name in found.sets for paper in found.published[name])
    return [*found.players, *(("", source) for source in papers)]


def _labels(found: ZeroShot) -> dict[str, Any]:
    return {
        "run": lambda key: shown(key[0]) if key[0] else f"paper: {key[1]}",
        "play": lambda key: key[1] if key[0] else "",
    }


def _measured(found: ZeroShot, key: tuple[str, str], name: str) -> Cell:
    """What a run, a player or a paper reached on a set."""
    if key[0]:
        return found.over_seeds(*key, name, found.measure)
    return next((paper for paper in found.published[name] if paper.source == key[1]), None)


def overview(found: ZeroShot) -> Table:
    """Run and way of playing × set."""
    columns = {name: lambda key, name=name: _measured(found, key, name) for name in found.sets}
    return Table.of(_keys(found), {**_labels(found), **columns})


def set_table(found: ZeroShot, name: str) -> Table:
    """Run and way of playing × metric, on one set."""

    def metric(of: str) -> Any:
        return lambda key: found.over_seeds(*key, name, of) if key[0] else None

    return Table.of(
        [key for key in _keys(found) if _measured(found, key, name) is not None],
        {
            **_labels(found),
            found.measure.replace("_", " "): lambda key: _measured(found, key, name),
            "95 % interval": lambda key: interval(found.over_seeds(*key, name, found.measure)) if key[0] else None,
            **{head: metric(of) for of, head in METRICS.items() if of != found.measure},
        },
    )


def cross_table(found: ZeroShot) -> Table:
    """Mixed team, set and way of playing: its wins beside each run's own, and by the place of the one agent."""
    keys = list(dict.fromkeys((each["run"], each["play"], each["set"]) for each in found.together))
    members = {each["run"]: each["members"] for each in found.together}

    def alone(name: str) -> Any:
        return lambda key: found.over_seeds(name, *key[1:], "win_rate") if name in members[key[0]] else None

    return Table.of(
        keys,
        {
            "run": lambda key: shown(key[0]),
            "set": lambda key: key[2],
            "play": lambda key: key[1],
            **{f"{shown(run.name)} alone": alone(run.name) for run in found.runs},
            "together": lambda key: found.over_seeds(*key, "win_rate"),
            **{
                f"agent {i} of the first": lambda key, i=i: found.over_seeds(*key, f"win_rate_agent_{i}")
                for i in range(found.runs[0].settings.agents)
            },
        },
    )


def _runs(found: ZeroShot) -> Table:
    def trained_with(run: EvaluatedRun) -> str:
        text = RunFolder(run.folder).config().get(TEXT)
        return ", ".join(filter(None, (listed(run.settings.env_options), f"text: {text}" if text else "")))

    def learnt_by(run: EvaluatedRun) -> str:
        return run.settings.learnt_by(run.stage, run.settings.of_stage(run.stage)[-1].name)

    return Table.of(
        found.runs,
        {
            "run": lambda run: shown(run.name),
            "agent": lambda run: f"`{run.settings.agent}`",
            "learnt by": learnt_by,
            "seeds": lambda run: ", ".join(map(str, run.teams)),
            "trained with": trained_with,
            "command": lambda run: code(RunFolder(run.folder).config().get("command") or "run_curriculum"),
        },
    )


def to_json(found: ZeroShot, command: str, versions: dict[str, str]) -> dict[str, Any]:
    """Everything that was found, and what it takes to find it again."""
    first = found.runs[0]

    def of(results: Sequence[Result], name: str) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for each in results:
            if each["set"] == name:
                place = content.setdefault(each["run"], {}).setdefault(each["play"], {"seeds": {}})
                place["seeds"][each["seed"]] = {k: v for k, v in each.items() if k not in PLACE}
        for run, plays in content.items():
            for play, place in plays.items():
                metrics = dict.fromkeys(metric for each in place["seeds"].values() for metric in each)
                known = {metric: found.over_seeds(run, play, name, metric) for metric in metrics}
                place["statistics"] = {metric: each.to_dict() for metric, each in known.items() if each is not None}
        return content

    return {
        "env": first.settings.env,
        "agents": first.settings.agents,
        "stage": first.stage,
        "episodes": found.episodes,
        "text": found.text,
        "command": command,
        "versions": versions,
        "runs": {run.name: {"folder": str(run.folder), **run.settings.as_dict()} for run in found.runs},
        "sets": {
            name: {
                "options": first.options(name),
                "runs": of(found.results, name),
                "cross_play": of(found.together, name),
                "baselines": dict(found.baselines[name]),
                "published": [paper._asdict() for paper in found.published[name]],
            }
            for name in found.sets
        },
    }


def plot_zero_shot(found: ZeroShot) -> bytes:
    """A PNG with one panel for each way of playing: runs on every set, other players, and the papers' main results."""
    plays = list(dict.fromkeys(each["play"] for each in found.results))
    figure, panels = make_figure(len(plays), width=2 + 1.1 * len(found.sets))
    first, names = found.runs[0], [plain(name) for name in found.sets]
    scale = scale_of(first.settings, first.stage)
    runs = list(dict.fromkeys(each["run"] for each in (*found.results, *found.together)))
    for play, panel in zip(plays, panels, strict=True):
        _draw_references(found, scale, panel)
        for k, run in enumerate(runs):
            known = {x: found.over_seeds(run, play, name, scale.quantity) for x, name in enumerate(found.sets)}
            ends = {
                x: (scale.factor * each.iqm, scale.factor * each.low, scale.factor * each.high)
                for x, each in known.items()
                if each is not None
            }
            singles = {
                x: [scale.factor * row.value for row in found.over_seeds.rows(run, play, name, scale.quantity)]
                for x, name in enumerate(found.sets)
            }
            draw_series(panel, k, len(runs), run, ends, {x: each for x, each in singles.items() if len(each) > 1})
        panel.set_title(f"{play} play", fontsize=11)
        panel.set_xticks(range(len(names)), names, rotation=25, ha="right", rotation_mode="anchor")
        panel.set_xlim(-0.5, len(names) - 0.5)
    figure.suptitle(plain(f"{first.title}, {found.episodes:,} games on each set"))
    return save(figure, panels, [scale] * len(panels))


def _draw_references(found: ZeroShot, scale: Scale, panel: Axes) -> None:
    """Draw other players as lines across each set, the papers' main result as a star."""
    for x, name in enumerate(found.sets):
        ends = x - PLACE_WIDTH / 2, x + PLACE_WIDTH / 2
        for who, style in ((ORACLE, "--"), (RANDOM, ":")):
            if who in found.baselines[name]:
                mean = scale.factor * found.baselines[name][who][scale.quantity]
                panel.hlines(mean, *ends, color="0.35", linestyle=style, linewidth=1.3, label=who)
        for paper in found.published[name][:1]:
            mean, std = scale.factor * paper.mean, scale.factor * (paper.std or 0)
            panel.errorbar(x, mean, std, fmt="*", color="black", markersize=10, label="paper")
