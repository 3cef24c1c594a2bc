"""Segmenters learn from a world's own games: manuals whose rows are statements, and the maps of every set of games."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing

import numpy as np
from torch import nn

from magrounding.agents.segments import Segmenter
from magrounding.agents.segments_learning import Manuals, exactness, learn_segments
from magrounding.envs.make import make_vec
from magrounding.experiment.settings import RunSettings
from magrounding.vector import VectorEnv

GAMES, ROUNDS = 256, 16
"""Games at once, and how often they begin anew for manuals to learn from."""
HELD_OUT = 2**40
"""Seed of the games whose manuals a Segmenter is judged by."""


def segmenters_of(modules: Iterable[nn.Module]) -> list[Segmenter]:
    """Every distinct Segmenter within some networks."""
    return list({each: None for module in modules for each in module.modules() if isinstance(each, Segmenter)})


def learn_from_games(settings: RunSettings, stage: str, seed: int = 0) -> Segmenter:
    """The Segmenter of a stage, learnt from the manuals of its training games.

    Which words the map shows, and where in an occupant, is looked up in the maps of all evaluation sets as well: names
    that training does not have are names too. What is written in their manuals is not looked at.

    Args:
        settings: of the run that it is for.
        stage: name of the stage.
        seed: of games, weights and what is drawn.

    Raises:
        ConfigurationError: manuals of one row, from which no cut is learnt.
    """
    with closing(_games(settings, stage)) as vec:
        spec = vec.spec
        shown = np.zeros((spec.vocabulary_size, spec.grid.words_per_occupant), np.int64)
        manuals = []
        for k in range(ROUNDS):
            observation, _ = vec.reset(seed=seed + k * GAMES)
            manuals.append(_manuals(vec, observation))
            shown += _shown(vec, observation)
    for name in settings.entry.evaluation_sets:
        with closing(_games(settings, stage, name)) as vec:
            shown += _shown(vec, vec.reset(seed=seed)[0])
    places = np.where(shown.any(1), shown.argmax(1) + 1, 0)
    return learn_segments(spec, Manuals(np.concatenate(manuals), places), seed)


def statements_found(settings: RunSettings, stage: str, segmenter: Segmenter) -> dict[str, dict[str, float]]:
    """Evaluation set → way of writing → part of its manuals divided as statements are, see `exactness`."""
    found = {}
    for name in settings.entry.evaluation_sets:
        with closing(_games(settings, stage, name)) as vec:
            found[name] = exactness(vec.spec, segmenter, _manuals(vec, vec.reset(seed=HELD_OUT)[0]))
    return found


def _games(settings: RunSettings, stage: str, evaluation_set: str | None = None) -> VectorEnv:
    """Games of a stage in which each statement has a row."""
    options = {**settings.stage_options(stage, evaluation_set), **settings.entry.in_layouts()[0]}
    return make_vec(settings.env, GAMES, **options)


def _manuals(vec: VectorEnv, observation: Mapping[str, np.ndarray]) -> np.ndarray:
    """[N, S, L] ids, a copy."""
    return observation["manual"].reshape(-1, *vec.spec["manual"].shape).copy()


def _shown(vec: VectorEnv, observation: Mapping[str, np.ndarray]) -> np.ndarray:
    """[V, W] how often each word is shown in each place of an occupant that is an entity."""
    grid = vec.spec.grid
    words = observation[grid.name].reshape(-1, grid.words_per_occupant)
    words = words[~np.isin(words[:, 0], (*grid.scenery_ids, *grid.avatar_ids))]
    counts = [np.bincount(column[column > 0], minlength=vec.spec.vocabulary_size) for column in words.T]
    return np.stack(counts, 1)
