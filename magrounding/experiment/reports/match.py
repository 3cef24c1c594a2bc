"""`match.md`, `match.json` and `match.png`: the results of a match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from magrounding.experiment.plots import SCORES, WIN_RATES, Scale, beside, draw_estimate, make_figure, save
from magrounding.experiment.reports.run import listed
from magrounding.experiment.tables import HOW_TO_READ, Cell, Table, code, page, percent, shown, with_interval
from magrounding.registry import env_entry
from magrounding.statistics import RESAMPLES, Interval, mean_interval
from magrounding.teams.actor import NoReply
from magrounding.teams.match import Results, ratings
from magrounding.teams.saved_games import SavedEpisode

_MEND = "mend that, and name another folder with --out"
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
        calls_text(results.calls, results.games),
        f"![results and ratings]({picture})",
        f"Command: {code(command)}",
    )


def summaries(results: Results) -> dict[str, dict[str, Any]]:
    """Line-up → what it reached: the measure, its difference from the first line-up's, the rating, and means."""
    rated, first = ratings(results), next(iter(results.games))
    return {
        name: {
            results.measure: mean_interval(results.outcomes(name)),
            "difference_from_first": mean_interval(results.outcomes(name) - results.outcomes(first)),
            "rating": rated.get(name),
            "length": float(np.mean([game.length for game in games])),
            "timed_out": float(np.mean([game.timed_out for game in games])),
            "returns": np.mean([game.returns for game in games], axis=0).tolist(),
            **{what: counts.mean(0).tolist() for what, counts in results.events.get(name, {}).items()},
            **({"calls": results.calls[name]} if name in results.calls else {}),
            **({"ended": ended} if (ended := endings(games)) else {}),
        }
        for name, games in results.games.items()
    }


def endings(games: Sequence[SavedEpisode]) -> dict[str, int]:
    """Reason → number of the games that were ended before their end."""
    return dict(Counter(game.ended_by for game in games if game.ended_by))


def check_replies(games: Mapping[str, Sequence[SavedEpisode]]) -> None:
    """Raise NoReply for a line-up of which every game was ended, as it got no reply."""
    for name, played in games.items():
        if all(game.ended_by for game in played):
            raise NoReply(f"no game of {name} came to its end: {played[0].ended_by}; {_MEND}")


def calls_text(calls: Mapping[str, Mapping[str, Any]], games: Mapping[str, Sequence[SavedEpisode]]) -> str:
    """The section on language models as Markdown: what each replied, what it took, why games ended; "" without any."""
    if not calls:
        return ""
    ended = {name: endings(games[name]) for name in calls}
    why = [f"* {code(name)}: {n:,} ended, as {shown(reason)}" for name in calls for reason, n in ended[name].items()]

    def number(of: str, show: Callable[[Any], str] = "{:,}".format) -> Callable[[str], Cell]:
        found = {name: each[of] for name, each in calls.items()}
        return lambda name: None if found[name] is None else show(found[name])

    table = Table.of(
        calls,
        {
            "line-up": code,
            "moves": number("moves"),
            "illegal replies": number("illegal_share", percent),
            "moves played for it": number("substituted"),
            "games ended": lambda name: f"{sum(ended[name].values()):,}",
            "faults": lambda name: ", ".join(f"{kind} {n:,}" for kind, n in calls[name]["call_faults"].items()) or "0",
            "tokens a move": number("tokens_a_move", "{:,.0f}".format),
            "seconds a move": number("seconds_a_move", "{:.2f}".format),
            "tokens in": number("read"),
            "cached": number("cached"),
            "out": number("written"),
            "reasoning": number("reasoning"),
            "price": number("price", "{:.4f}".format),
            "facts read": number("fact_accuracy", percent),
        },
    )
    return page("## Language models", table.markdown(), "\n".join(why)).rstrip("\n")


def match_table(results: Results) -> Table:
    """Line-up × what it reached."""
    found, won = summaries(results), results.measure == "won"
    first = next(iter(found))

    def cell(of: str, show: Callable[[Any], str]) -> Callable[[str], Cell]:
        return lambda name: None if found[name][of] is None else show(found[name][of])

    def estimate(of: str, show: Callable[[float], str]) -> Callable[[str], Cell]:
        return lambda name: with_interval(found[name][of], show)

    differ = estimate("difference_from_first", (lambda share: f"{100 * share:+.1f}") if won else "{:+.2f}".format)
    return Table.of(
        found,
        {
            "line-up": code,
            "wins" if won else "score": estimate(results.measure, percent if won else "{:.2f}".format),
            "games": lambda name: len(results.games[name]),
            "difference": lambda name: None if name == first else differ(name),
            "steps": cell("length", "{:.1f}".format),
            "timed out": cell("timed_out", percent),
            **{
                f"return of agent {i}": cell("returns", lambda each, i=i: f"{each[i]:.2f}")
                for i in range(len(found[first]["returns"]))
            },
            **{
                what: cell(what, lambda counts: " · ".join(f"{each:.2f}" for each in counts))
                for what in results.events.get(first, {})
            },
            "rating": estimate("rating", "{:+.0f}".format),
        },
    )


def to_json(results: Results, command: str, versions: dict[str, str]) -> dict[str, Any]:
    """All numbers of the report."""
    lineups = {
        name: {what: value._asdict() if isinstance(value, Interval) else value for what, value in summary.items()}
        for name, summary in summaries(results).items()
    }
    about = {"env": results.env, "options": results.options, "games": len(next(iter(results.games.values())))}
    about |= {"text": _text(results), "resamples": RESAMPLES, "command": command, "versions": versions}
    return {**about, "lineups": lineups}


def plot_match(results: Results) -> bytes:
    """A PNG: outcome and rating of each line-up, with their intervals."""
    found, scale = summaries(results), WIN_RATES if results.measure == "won" else SCORES
    figure, panels = make_figure(2, alike=False)
    for panel, of, quantity in zip(panels, (scale, _RATING), (results.measure, "rating"), strict=True):
        for k, (name, summary) in enumerate(found.items()):
            if (each := summary[quantity]) is not None:
                draw_estimate(panel, beside(k, len(found)), of, each, (), k, name)
        panel.set_xticks([])
        panel.set_xlim(-0.5, 0.5)
    return save(figure, panels, (scale, _RATING))


def _text(results: Results) -> str:
    return env_entry(results.env).describe(**results.options).source
