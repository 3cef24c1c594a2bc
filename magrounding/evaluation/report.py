"""`report.md`: what was run, what it cost, and how often it wins, beside the floor, the ceiling and the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from magrounding.evaluation.plots import plot_curves
from magrounding.evaluation.results import RunResults, read_results
from magrounding.evaluation.statistics import Statistics
from magrounding.storage import write_atomic
from magrounding.training.presets import Promotion
from magrounding.training.progress import duration

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
        f"# {settings.env}: {team}, preset `{settings.preset.name}`",
        settings.preset.about,
        "## Results",
        "Win rates of the best weights of each stage (chosen on training games, never on held-out ones), greedy play. "
        "Random and oracle played the same games. ± is the standard deviation over seeds; the interval is a 95 % "
        "bootstrap interval of the interquartile mean.",
        results_table(results),
        f"![win rates during training]({CURVES_FILE})",
        "## Budget",
        budget_table(results),
        time_shares(results),
        "## How to repeat it",
        facts(results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def results_table(results: RunResults) -> str:
    """Stage × set: trained team, interval, random, oracle, paper."""
    rows = []
    for stage, name in results.reported():
        won, length = results.final(stage, name), results.final(stage, name, "length")
        if won is None or length is None:
            rows.append((stage, name, "not reached", "", "", "", "", ""))
            continue
        others = results.baselines.get(f"{stage}/{name}", {})
        floor, ceiling = (_percent(others[who]["win_rate"]) if who in others else "–" for who in ("random", "oracle"))
        paper = results.published.get((stage, name))
        known = "–" if paper is None else f"{_percent(paper[0])} ± {_percent(paper[1])} ({paper[2]})"
        rows.append((stage, name, _spread(won), _interval(won), f"{length.mean:.1f}", floor, ceiling, known))
    heads = ("stage", "set", "win rate", "IQM, 95 % interval", "steps a game", "random", "oracle", "paper")
    return table(heads, rows)


def budget_table(results: RunResults) -> str:
    """Stage: what it was allowed and what it took, averaged over seeds."""
    rows = []
    for stage in results.settings.stages:
        lines = [line for seed in results.settings.seeds for line in results.select("stage", seed, stage=stage)]
        if lines:
            steps = sum(line["steps"] for line in lines) / len(lines)
            best = sum(line["best_steps"] for line in lines) / len(lines)
            took = duration(sum(line["stage_seconds"] for line in lines) / len(lines))
            rows.append(
                (stage, rule_text(results.settings.preset.promotion(stage)), f"{steps:,.0f}", f"{best:,.0f}", took)
            )
        else:
            rows.append((stage, rule_text(results.settings.preset.promotion(stage)), "–", "–", "–"))
    return table(("stage", "ends", "environment steps", "best weights at", "wall time"), rows)


def rule_text(rule: Promotion) -> str:
    """A promotion rule in words."""
    conditions = []
    if rule.steps is not None:
        conditions.append(f"after {rule.steps:,} steps")
    if rule.win_rate is not None:
        conditions.append(f"at {_percent(rule.win_rate)} wins over {rule.window:,} training games")
    text = (" or " if rule.rule == "any" else " and ").join(conditions)
    return text if rule.minutes is None else f"{text}, at the latest after {rule.minutes:g} min"


def time_shares(results: RunResults) -> str:
    """Where the wall time went, in a sentence."""
    spent: dict[str, float] = {}
    for seed in results.settings.seeds:
        last = results.select("stage", seed)[-1:]
        for line in last:
            for name, seconds in line["spent"].items():
                spent[name] = spent.get(name, 0.0) + seconds
    total = sum(spent.values())
    if not total:
        return ""
    shares = ", ".join(f"{name} {_percent(seconds / total)}" for name, seconds in spent.items())
    loop = sum(spent.get(name, 0.0) for name in ("world", "acting", "learning"))
    lasts = [line for seed in results.settings.seeds for line in results.select("train", seed)[-1:]]
    samples = sum(line["total_steps"] for line in lasts) * results.settings.agents
    speed = f" The training loop took {samples / loop:,.0f} agent samples a second." if loop else ""
    return f"Wall time {duration(total)}: {shares}.{speed}"


def facts(results: RunResults) -> str:
    """Everything that has to be equal for the numbers to come again."""
    settings, config, preset = results.settings, results.config, results.settings.preset
    learner = preset.learner
    lines = [
        ("command", f"`{config.get('command') or 'run_curriculum'}`"),
        ("seeds", ", ".join(map(str, settings.seeds))),
        (
            "games",
            f"{preset.num_envs} at once, unrolls of {learner.unroll} steps; {preset.report_games:,} an evaluation",
        ),
        ("environment", _options(settings.env_options)),
        ("network", _options(settings.policy_options) or "as published"),
        ("learner", _options({name: getattr(learner, name) for name in learner.__dataclass_fields__})),
        ("versions", _options(config.get("versions", {}))),
    ]
    return "\n".join(f"* {name}: {value}" for name, value in lines)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    body = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _spread(statistics: Statistics) -> str:
    if statistics.seeds == 1:
        return f"**{_percent(statistics.mean)}** (one seed)"
    return f"**{_percent(statistics.mean)}** ± {_percent(statistics.std)}"


def _interval(statistics: Statistics) -> str:
    if statistics.seeds == 1:
        return "–"
    return f"{_percent(statistics.iqm)} [{_percent(statistics.low)}, {_percent(statistics.high)}]"


def _options(options: dict | object) -> str:
    return ", ".join(f"{name} {value}" for name, value in dict(options).items())  # type: ignore[call-overload]
