"""`zero_shot.md`, `zero_shot.json` and `zero_shot.png`: an evaluation beside other players and the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from magrounding.experiment.evaluate import ALL, SILENT
from magrounding.experiment.plots import PLACE_WIDTH, Scale, beside, draw_estimate, make_figure, plain, save, scale_of
from magrounding.experiment.reports.run import listed, lost_games
from magrounding.experiment.results import TEXT
from magrounding.experiment.tables import HOW_TO_READ, Cell, Table, code, gap_closed, interval, page, shown
from magrounding.experiment.zero_shot import PLACE, EvaluatedRun, Result, ZeroShot
from magrounding.teams.lineup import ORACLE, RANDOM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {
    "return": "return",
    "length": "steps",
    "steps_to_win": "steps to win",
    "fact_accuracy": "facts read",
    "lines_told": "lines told",
    "needed_told": "needed lines told",
    "subgoal_conflicts": "subgoal conflicts",
    "mask_coverage": "mask coverage",
    "mask_conflicts": "mask conflicts",
    "modelling_accuracy": "modelling accuracy",
    "illegal_share": "illegal replies",
    "failures": "calls without a reply",
    "tokens_a_move": "tokens a move",
    "seconds_a_move": "seconds a move",
}
"""Metric → its column, beside the measure's own."""

PAPER = "paper: "
Key = tuple[str, str]
"""Run or player and way of playing; of papers PAPER and the source."""


def zero_shot_report(found: ZeroShot, picture: str, command: str) -> str:
    """The evaluation as Markdown; `picture` is the name of its figure, `command` what repeats it."""
    first = found.runs[0]
    return page(
        f"# Zero-shot: {first.title}, {first.settings.agents} agent{'s' if first.settings.agents > 1 else ''}",
        HOW_TO_READ,
        f"{found.episodes:,} games on each set ({listed(first.game().options)}).",
        first.plan.entry.evaluation.note,
        f"Text: {found.text}." if found.text else "",
        tables(found),
        f"![results]({picture})",
        "## Runs",
        _runs(found.runs).markdown(),
        f"Command: {code(command)}",
    )


def tables(found: ZeroShot) -> str:
    """Results of all on all sets, mixed teams, and everything else set by set."""
    summaries = [*found.results, *found.together, *(each for of in found.baselines.values() for each in of.values())]
    left = [f"* {shown(run.name)} in {n}: {code(w['reason'])}" for run in found.runs for n, w in run.unplayed.items()]
    return page(
        "## Scores" if found.measure == "score" else "## Win rates",
        overview(found).markdown(),
        "\n".join(left),
        *(("## Cross-play", cross_table(found).markdown()) if found.together else ()),
        *(part for name in found.sets for part in (f"## {name}", set_table(found, name).markdown())),
        lost_games(summaries),
    ).rstrip("\n")


def overview(found: ZeroShot) -> Table:
    """Run and way of playing × set."""
    return _table(found, found.sets, {name: _cell(found, name, found.measure) for name in found.sets})


def set_table(found: ZeroShot, name: str) -> Table:
    """Run and way of playing × metric, on one set."""
    columns = {
        found.measure.replace("_", " "): _cell(found, name, found.measure),
        "95 % interval": lambda key: interval(found.over_seeds(*key, name, found.measure)),
        "gap closed": lambda key: gap_closed(
            *(found.over_seeds(*each, name, found.measure) for each in (key, (SILENT, ""), (ALL, "")))
        ),
        **{head: _cell(found, name, metric) for metric, head in METRICS.items() if metric != found.measure},
    }
    return _table(found, [name], columns)


def _table(found: ZeroShot, sets: Sequence[str], columns: Mapping[str, Callable[[Key], Cell]]) -> Table:
    papers = dict.fromkeys(paper.source for name in sets for paper in found.published[name])
    return Table.of(
        [*found.players, *((PAPER, source) for source in papers)],
        {
            "run": lambda key: key[0] + key[1] if key[0] == PAPER else shown(key[0]),
            "play": lambda key: "" if key[0] == PAPER else key[1],
            **columns,
        },
    )


def _cell(found: ZeroShot, name: str, metric: str) -> Callable[[Key], Cell]:
    """The column of a metric on a set."""
    papers = {(PAPER, paper.source): paper for paper in found.published[name] if metric == found.measure}
    return lambda key: papers[key] if key in papers else found.over_seeds(*key, name, metric)


def cross_table(found: ZeroShot) -> Table:
    """Mixed team, set and way of playing: its wins beside each run's own, and by the place of the one agent."""
    members = {each["run"]: each["members"] for each in found.together}

    return Table.of(
        dict.fromkeys((each["run"], each["play"], each["set"]) for each in found.together),
        {
            "run": lambda key: shown(key[0]),
            "set": lambda key: key[2],
            "play": lambda key: key[1],
            **{
                f"{shown(name)} alone": lambda key, name=name: (
                    found.over_seeds(name, *key[1:], "win_rate") if name in members[key[0]] else None
                )
                for name in (run.name for run in found.runs)
            },
            "together": lambda key: found.over_seeds(*key, "win_rate"),
            **{
                f"agent {i} of the first": lambda key, i=i: found.over_seeds(*key, f"win_rate_agent_{i}")
                for i in range(found.runs[0].settings.agents)
            },
        },
    )


def _runs(runs: Sequence[EvaluatedRun]) -> Table:
    return Table.of(
        runs,
        {
            "run": lambda run: shown(run.name),
            "agent": lambda run: f"`{run.settings.agent}`",
            "learnt by": lambda run: run.settings.resolve().of_stage(run.stage)[-1].learnt_by,
            "seeds": lambda run: ", ".join(map(str, run.teams)),
            "trained with": lambda run: listed(run.settings.env_options),
            "text": lambda run: run.config.get(TEXT),
            "command": lambda run: code(run.config.get("command") or "run_curriculum"),
        },
    )


def to_json(found: ZeroShot, command: str, versions: dict[str, str]) -> dict[str, Any]:
    """Everything that was found, and what it takes to find it again."""
    first = found.runs[0]

    def of(results: Sequence[Result], name: str) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for each in results:
            if each["set"] == name:
                run, play, summary = each["run"], each["play"], {k: v for k, v in each.items() if k not in PLACE}
                place = content.setdefault(run, {}).setdefault(play, {"seeds": {}, "statistics": {}})
                place["seeds"][each["seed"]] = summary
                known = ((metric, found.over_seeds(run, play, name, metric)) for metric in summary)
                place["statistics"] |= {metric: of.to_dict() for metric, of in known if of is not None}
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
                "options": first.game(name).options,
                "runs": of(found.results, name),
                "unplayed": {run.name: run.unplayed[name] for run in found.runs if name in run.unplayed},
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
    runs = list(dict.fromkeys(each["run"] for each in (*found.results, *found.together)))
    first, names = found.runs[0], [plain(name) for name in found.sets]
    figure, panels = make_figure(len(plays), width=2 + 1.1 * len(names))
    scale = scale_of(first.plan.stages[first.stage])
    for play, panel in zip(plays, panels, strict=True):
        _draw_references(found, scale, panel)
        for k, run in enumerate(runs):
            for x, name in enumerate(found.sets):
                key = run, play, name, scale.quantity
                if (of := found.over_seeds(*key)) is not None:
                    singles = [row.value for row in found.over_seeds.rows(*key)]
                    draw_estimate(panel, x + beside(k, len(runs)), scale, of.estimate, singles, k, run)
        panel.set_title(f"{play} play", fontsize=11)
        panel.set_xticks(range(len(names)), names, rotation=25, ha="right", rotation_mode="anchor")
        panel.set_xlim(-0.5, len(names) - 0.5)
    figure.suptitle(plain(f"{first.title}, {found.episodes:,} games on each set"))
    return save(figure, panels, [scale] * len(panels))


def _draw_references(found: ZeroShot, scale: Scale, panel: Axes) -> None:
    """Draw other players as lines across each set, the papers' main result as a star."""
    for x, name in enumerate(found.sets):
        ends = x - PLACE_WIDTH / 2, x + PLACE_WIDTH / 2
        for who, style in ((ORACLE, "--"), (RANDOM, ":"), (SILENT, "-.")):
            if who in found.baselines[name]:
                mean = scale.factor * found.baselines[name][who][scale.quantity]
                panel.hlines(mean, *ends, color="0.35", linestyle=style, linewidth=1.3, label=who)
        for paper in found.published[name][:1]:
            mean, std = scale.factor * paper.mean, scale.factor * (paper.std or 0)
            panel.errorbar(x, mean, std, fmt="*", color="black", markersize=10, label="paper")
