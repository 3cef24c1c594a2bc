"""`match.md`, `match.json` and `match.png`: the results of a match."""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.experiment.markdown import code, table
from magrounding.experiment.match import Results, ratings
from magrounding.experiment.plots import COLOURS, make_figure, plain, to_png
from magrounding.experiment.report import percent
from magrounding.experiment.statistics import RESAMPLES, Interval, mean_interval
from magrounding.registry import env_entry


def match_report(results: Results, picture: str, command: str) -> str:
    """The match as Markdown; `picture` is the name of its figure, `command` what repeats it."""
    games = len(next(iter(results.games.values())))
    options = ", ".join(f"{name} {value}" for name, value in results.options.items())
    text = env_entry(results.env).describe(**results.options).source
    won, counted = results.measure == "won", _counted(results)
    sections = [
        f"# Match: {results.env}",
        f"{games:,} game{'s' if games > 1 else ''} of the same seeds for every line-up ({options}). "
        "Brackets are 95 % intervals over games, "
        f"{'of wins those of Jeffreys, of others' if won else ''} by bootstrap. The difference is "
        f"{'of win rates' if won else 'of scores'} and is paired: game by game, against the first line-up. Ratings are "
        "Bradley–Terry on the Elo scale, their mean being 0; one that plays alone has none. In each game the line-up "
        f"that {'wins' if won else 'has the higher score'} has beaten one that {'does not' if won else 'has less'}; "
        "others are drawn."
        + (f" {' and '.join(counted).capitalize()} are means over games, agent by agent." if counted else "")
        + (f" Text: {text}." if text else ""),
        _table(results),
        f"![{'win rates' if won else 'scores'} and ratings]({picture})",
        f"Command: {code(command)}",
    ]
    return "\n\n".join(sections) + "\n"


def _table(results: Results) -> str:
    first, rated = next(iter(results.games)), ratings(results)
    won = results.measure == "won"
    show = percent if won else "{:.2f}".format
    agents = len(next(iter(results.games.values()))[0].returns)
    heads = ["line-up", "wins" if won else "score", "games", "difference", "steps", "timed out"]
    heads += [f"return of agent {i}" for i in range(agents)] + [*_counted(results), "rating"]
    rows = []
    for name, games in results.games.items():
        outcomes = results.outcomes(name)
        difference = (
            "–" if name == first else _with_interval(mean_interval(outcomes - results.outcomes(first)), _points(won))
        )
        steps, late = np.mean([game.length for game in games]), np.mean([game.timed_out for game in games])
        returns = np.mean([game.returns for game in games], axis=0)
        rating = _with_interval(rated.get(name), "{:+.0f}".format)
        cells = [
            code(name),
            _with_interval(mean_interval(outcomes), show),
            f"{len(games):,}",
            difference,
            f"{steps:.1f}",
            percent(float(late)),
        ]
        events = [
            " · ".join(f"{each:.2f}" for each in counts.mean(0)) for counts in results.events.get(name, {}).values()
        ]
        rows.append([*cells, *(f"{each:.2f}" for each in returns), *events, rating])
    return table(heads, rows)


def _counted(results: Results) -> list[str]:
    """What agents did beside winning that the world counts."""
    return list(next(iter(results.events.values()), {}))


def to_json(results: Results, command: str, versions: dict[str, str]) -> dict[str, Any]:
    """All numbers of the report."""
    first, rated = next(iter(results.games)), ratings(results)
    lineups = {}
    for name, games in results.games.items():
        outcomes = results.outcomes(name)
        lineups[name] = {
            results.measure: vars(mean_interval(outcomes)),
            "difference_from_first": vars(mean_interval(outcomes - results.outcomes(first))),
            "rating": vars(rated[name]) if name in rated else None,
            "length": float(np.mean([game.length for game in games])),
            "timed_out": float(np.mean([game.timed_out for game in games])),
            "returns": np.mean([game.returns for game in games], axis=0).tolist(),
            **{what: counts.mean(0).tolist() for what, counts in results.events.get(name, {}).items()},
        }
    about = {"env": results.env, "options": results.options, "games": len(next(iter(results.games.values())))}
    about["text"] = env_entry(results.env).describe(**results.options).source
    return {**about, "resamples": RESAMPLES, "command": command, "versions": versions, "lineups": lineups}


def plot_match(results: Results) -> bytes:
    """A PNG: outcome and rating of each line-up, with their intervals."""
    names, rated, won = list(results.games), ratings(results), results.measure == "won"
    outcomes = [mean_interval(results.outcomes(name)) for name in names]
    figure, (left, right) = make_figure(2, width=4.5, height=1.4 + 0.45 * len(names))
    for panel, found, factor, title in (
        (left, outcomes, 100 if won else 1, "games won (%)" if won else "score"),
        (right, [rated.get(name) for name in names], 1, "rating (Elo)"),
    ):
        for k, each in enumerate(found):
            if each is None:
                continue
            value, *ends = (factor * (each.value if end is None else end) for end in (each.value, each.low, each.high))
            below, above = max(0.0, value - ends[0]), max(0.0, ends[1] - value)
            panel.errorbar(value, k, xerr=[[below], [above]], fmt="o", color=COLOURS[k % len(COLOURS)], capsize=4)
        panel.set_xlabel(title)
        panel.grid(axis="x", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    if won:
        left.set_xlim(-2, 102)
    right.locator_params(axis="x", nbins=5)
    left.set_yticks(range(len(names)), [plain(name).replace(",", ",\n") for name in names], fontsize=8)
    left.set_ylim(len(names) - 0.5, -0.5)
    return to_png(figure)


def _with_interval(estimate: Interval | None, show: Any) -> str:
    """An estimate and its interval; – where there is none, and no interval where one game says nothing of others."""
    if estimate is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return show(estimate.value)
    return f"{show(estimate.value)} [{show(estimate.low)}, {show(estimate.high)}]"


def _points(won: bool) -> Any:
    return (lambda share: f"{100 * share:+.1f}") if won else "{:+.2f}".format
