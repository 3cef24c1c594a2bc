"""`match.md`, `match.json` and `match.png`: the results of a match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from magrounding.experiment.markdown import code
from magrounding.experiment.match import Results, ratings
from magrounding.experiment.plots import SCORES, WIN_RATES, Scale, draw_series, make_figure, save
from magrounding.experiment.reports import HOW_TO_READ
from magrounding.experiment.reports.run import listed
from magrounding.experiment.statistics import RESAMPLES, Interval, mean_interval
from magrounding.experiment.tables import Cell, Table, page, percent, with_interval
from magrounding.registry import env_entry

_RATING = Scale("rating", 1.0, "rating (Elo)")


def match_report(results: Results, picture: str, command: str) -> str:
    """The match as Markdown; `picture` is the name of its figure, `command` what repeats it."""
    games, text = len(next(iter(results.games.values()))), _text(results)
    return page(
        f"# Match: {results.env}",
        HOW_TO_READ,
        f"{games:,} game{'s' if games > 1 else ''} of the same seeds for every line-up ({listed(results.options)})."
        + (f" Text: {text}." if text else ""),
        match_table(results).markdown(),
        f"![results and ratings]({picture})",
        f"Command: {code(command)}",
    )


def match_table(results: Results) -> Table:
    """Line-up × what it reached."""
    first, rated, won = next(iter(results.games)), ratings(results), results.measure == "won"
    agents = len(next(iter(results.games.values()))[0].returns)

    def mean(of: str, show: Callable[[float], str]) -> Callable[[str], Cell]:
        return lambda name: show(float(np.mean([getattr(game, of) for game in results.games[name]])))

    def counts(what: str) -> Callable[[str], Cell]:
        return lambda name: " · ".join(f"{each:.2f}" for each in results.events[name][what].mean(0))

    return Table.of(
        results.games,
        {
            "line-up": code,
            "wins" if won else "score": lambda name: with_interval(reached(results, name), percent if won else _plain),
            "games": lambda name: len(results.games[name]),
            "difference": lambda name: (
                None if name == first else with_interval(difference(results, name), _points if won else _signed)
            ),
            "steps": mean("length", "{:.1f}".format),
            "timed out": mean("timed_out", percent),
            **{
                f"return of agent {i}": lambda name, i=i: float(
                    np.mean([game.returns[i] for game in results.games[name]])
                )
                for i in range(agents)
            },
            **{what: counts(what) for what in next(iter(results.events.values()), {})},
            "rating": lambda name: with_interval(rated[name], "{:+.0f}".format) if name in rated else None,
        },
    )


def reached(results: Results, name: str) -> Interval:
    """Mean outcome of a line-up."""
    return mean_interval(results.outcomes(name))


def difference(results: Results, name: str) -> Interval:
    """Mean difference of a line-up from the first, game by game."""
    return mean_interval(results.outcomes(name) - results.outcomes(next(iter(results.games))))


def to_json(results: Results, command: str, versions: dict[str, str]) -> dict[str, Any]:
    """All numbers of the report."""
    rated, lineups = ratings(results), {}
    for name, games in results.games.items():
        lineups[name] = {
            results.measure: reached(results, name).to_dict(),
            "difference_from_first": difference(results, name).to_dict(),
            "rating": rated[name].to_dict() if name in rated else None,
            "length": float(np.mean([game.length for game in games])),
            "timed_out": float(np.mean([game.timed_out for game in games])),
            "returns": np.mean([game.returns for game in games], axis=0).tolist(),
            **{what: counts.mean(0).tolist() for what, counts in results.events.get(name, {}).items()},
        }
    about = {"env": results.env, "options": results.options, "games": len(next(iter(results.games.values())))}
    about["text"] = _text(results)
    return {**about, "resamples": RESAMPLES, "command": command, "versions": versions, "lineups": lineups}


def plot_match(results: Results) -> bytes:
    """A PNG: outcome and rating of each line-up, with their intervals."""
    rated, scale = ratings(results), WIN_RATES if results.measure == "won" else SCORES
    scales = (scale, _RATING)
    figure, panels = make_figure(2, alike=False)
    for panel, of in zip(panels, scales, strict=True):
        for k, name in enumerate(results.games):
            found = reached(results, name) if of is scale else rated.get(name)
            if found is not None:
                ends = (found.value if end is None else end for end in (found.value, found.low, found.high))
                value, low, high = (of.factor * end for end in ends)
                draw_series(panel, k, len(results.games), name, {0: (value, low, high)})
        panel.set_xticks([])
        panel.set_xlim(-0.5, 0.5)
    return save(figure, panels, scales)


def _text(results: Results) -> str:
    return env_entry(results.env).describe(**results.options).source


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


_plain, _signed = "{:.2f}".format, "{:+.2f}".format
