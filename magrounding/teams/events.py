"""Events: kills and taken things of each agent of saved games, counted by playing them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from magrounding.envs.make import make
from magrounding.envs.parallel import WorldEnv
from magrounding.spec import EVENTS
from magrounding.teams.saved_games import SavedEpisode, actions_of

KILLS, ITEMS, HELD = "kills", "items", "held"


def count_events(env: str, options: Mapping[str, Any], episodes: Sequence[SavedEpisode]) -> dict[str, np.ndarray]:
    """Count over whole episodes, in the single env, which still shows the end where a batch has begun anew.

    Returns:
        "kills", monsters that an agent has killed, and "items", things that it has taken, each [G, n] int64. No kills
        where nothing can be killed, nothing at all without the capability EVENTS.
    """
    with closing(make(env, **options)) as single:
        if not isinstance(single, WorldEnv) or EVENTS not in single.spec.capabilities:
            return {}
        counted = [_count(single, episode) for episode in episodes]
    return {name: np.stack([each[name] for each in counted]) for name in counted[0]} if counted else {}


def _count(single: WorldEnv, episode: SavedEpisode) -> dict[str, np.ndarray]:
    single.reset(seed=episode.seed)
    events = single.world.events()
    counts = {name: np.zeros(single.world.num_agents, np.int64) for name in (KILLS, ITEMS) if name in (ITEMS, *events)}
    for actions in episode.actions:
        held = events[HELD][0]
        single.step(actions_of(single, actions))
        events = single.world.events()
        counts[ITEMS] += (events[HELD][0] != held) & (events[HELD][0] >= 0)  # a step takes no more than one thing
        if KILLS in counts:
            counts[KILLS] += events[KILLS][0]
    return counts
