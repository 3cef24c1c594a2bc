"""Cross-play: agents of different runs, or of different seeds of one run, in one team."""

from __future__ import annotations

from collections.abc import Sequence

from magrounding.errors import ConfigurationError
from magrounding.experiment.evaluate import Line
from magrounding.experiment.zero_shot import EvaluatedRun, Result
from magrounding.teams.evaluate import FAULTS
from magrounding.teams.team import Team, mixed_team


def seed_pairs(one: EvaluatedRun, other: EvaluatedRun) -> list[tuple[int, int]]:
    """Pair the seeds of two runs that play together.

    The k-th seeds of both, the shorter list from its start again, so that pairs are as independent as seeds are. A run
    with itself pairs each seed with the next.

    Raises:
        ConfigurationError: a single agent, or a run of one seed with itself.
    """
    if one.settings.agents < 2:
        raise ConfigurationError(f"cross-play takes teams of two agents or more, {one.name} has one agent")
    ours, theirs = list(one.teams), list(other.teams)
    if one is not other:
        return [(ours[k % len(ours)], theirs[k % len(theirs)]) for k in range(max(len(ours), len(theirs)))]
    if len(ours) < 2:
        raise ConfigurationError(f"{one.name} has one seed here: to play with itself it takes two or more")
    ring = list(zip(ours, [*ours[1:], ours[0]], strict=True))
    return ring[:1] if len(ring) == 2 else ring  # the second pair is the first the other way round


def cross_play(
    one: EvaluatedRun,
    other: EvaluatedRun,
    pairs: Sequence[tuple[int, int]],
    sets: Sequence[str],
    episodes: int,
    plays: Sequence[str],
) -> list[Result]:
    """Results of teams in which one agent is of one run and the rest of another.

    The one agent takes every place in the team in turn, and the numbers of each of the `seed_pairs` are means over the
    places; entry `win_rate_agent_<i>` is the win rate where agent i is the one. The games are those of `zero_shot`.

    Raises:
        ConfigurationError: teams that read or see different things.
    """
    members = one.name, other.name
    teams = {f"{a} with {b}": _placements(one.teams[a], other.teams[b]) for a, b in pairs}
    return [
        {"run": " with ".join(members), "set": name, "play": play, "seed": pair, "members": members}
        | _over_places([*filter(None, played)])
        for name in sets
        for play in plays
        for pair, placements in teams.items()
        if all(played := [one.play(team, name, play, episodes) for team in placements])
    ]


def _placements(one: Team, other: Team) -> list[Team]:
    """The other team with one agent exchanged, each in turn."""
    places = range(one.num_agents)
    return [mixed_team([one if place == i else other for place in places]) for i in places]


def _over_places(summaries: Sequence[Line]) -> Line:
    """Means of the entries over the summaries that have them (of faults, the sum), and the win rate of each."""
    names = dict.fromkeys(name for summary in summaries for name in summary)
    found = {name: [summary[name] for summary in summaries if name in summary] for name in names}
    each = {f"win_rate_agent_{i}": summary["win_rate"] for i, summary in enumerate(summaries)}
    return {name: sum(values) / (1 if name == FAULTS else len(values)) for name, values in found.items()} | each
