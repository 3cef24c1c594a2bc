"""Segmenters and readers of edges learn from a world's own games: their manuals, and the maps of every set of games."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial

import numpy as np
import torch
from torch import nn

from magrounding.agents.relread.statements import ROWS
from magrounding.capabilities import HasFacts, find_capability
from magrounding.errors import ConfigurationError, check_choice
from magrounding.experiment.plan import Stage
from magrounding.experiment.stage import SEGMENTS, StageSession, derive_seed
from magrounding.extensions.running_text.assumptions import ENGLISH
from magrounding.extensions.running_text.edges import Edges
from magrounding.extensions.running_text.edges_learning import Renderings, learn_edges
from magrounding.extensions.running_text.segments import STOPS, Delexicalised, Segmenter, Stops
from magrounding.extensions.running_text.segments_learning import exactness, learn_segments
from magrounding.registry import env_entry
from magrounding.spec import EnvSpec
from magrounding.vector import VectorEnv

GAMES, ROUNDS = 256, 16
"""Games at once, and how often they begin anew for manuals to learn from."""
HELD_OUT = 2**40
"""Seed of the games whose manuals a Segmenter is judged by."""


PLAIN, OWN, FROM_ENGLISH = 1.0, 3.0, 8.0
"""Relative numbers of texts to learn from in plain sentences, in those of the stage, and in those of ENGLISH_FILE."""
ENGLISH_FILE = "example:english.json"
TEMPLATES = "templates"
"""The option of worlds that write with the sentences of a file."""
CONSTRUCTIONS = "constructions"
"""The option of worlds whose manuals may hold several facts to a sentence; "none" of them: one."""
PARAGRAPH = {"layout": "paragraph"}
"""Options by which a world writes a manual in one row, with punctuation."""


def segmenters_of(modules: Iterable[nn.Module]) -> list[Delexicalised]:
    """Every distinct Segmenter and reader of edges within some networks."""
    return list({each: None for module in modules for each in module.modules() if isinstance(each, Delexicalised)})


def learn_segments_of(
    kind: type[Delexicalised],
    stage: Stage,
    seed: int = 0,
    statements: str = ROWS,
    assume: tuple[str, ...] = (),
) -> Delexicalised:
    """A Segmenter or a reader of edges, learnt from the training games of a stage; for `assume` see `learn_edges`.

    Which words the map shows, and where in an occupant, is looked up in the maps of all evaluation sets as well: names
    that training does not have are names too. What is written in their manuals is not looked at, nor are the facts of
    any game (`vec.facts`). For `statements` see `_known`.

    Raises:
        ConfigurationError: manuals of one row, from which nothing is learnt; ENGLISH in an environment that takes no
            templates; or see `_known`.
    """
    if issubclass(kind, Edges):
        return learn_edges(stage.games.spec, renderings_of(stage, seed, statements, assume), seed, assume=assume)
    spec, manuals, maps = _known(stage, seed, statements, {})
    places, _ = _seen(stage, spec, maps, np.zeros(spec.vocabulary_size, np.bool_), seed)
    return learn_segments(spec, manuals, places, seed)


def prepare_segmenters(session: StageSession) -> None:
    """Let what finds statements in a stage's running text learn it, the same in all networks."""
    since, networks = time.perf_counter(), [each.module for each in session.learners]
    segmenters = segmenters_of([*networks, *(player.policy for player in session.players)])
    if segmenters:
        stage = session.segment.stage
        seed = derive_seed(session.seed, SEGMENTS, stage.index)
        learnt = learn_segments_of(type(segmenters[0]), stage, seed).state_dict()
        for each in segmenters:
            each.load_state_dict(learnt)
        session.clock.add("teaching", since)


def first_game(seed: int) -> int:
    """First game seed of a user's `--seed`: no two seeds below 2²⁸ draw the same games, and none a held-out one."""
    return seed * ROUNDS * GAMES % HELD_OUT


def renderings_of(
    stage: Stage,
    seed: int = 0,
    statements: str = ROWS,
    assume: tuple[str, ...] = (),
    english: str = ENGLISH_FILE,
) -> Renderings:
    """Training data of `learn_edges`: games of a stage, in its own sentences and in plain ones.

    With ENGLISH assumed, the same games are written in the sentences of the file `english` as well.
    """
    entry, spec = env_entry(stage.games.id), stage.games.spec
    plainly = {CONSTRUCTIONS: "none"} if CONSTRUCTIONS in entry.options else {}
    ways = [(plainly, PLAIN), *([({}, OWN)] if plainly else [])]
    if ENGLISH in assume:
        if TEMPLATES not in entry.options:
            raise ConfigurationError(f"{entry.id} takes no {TEMPLATES}: leave out --assume {ENGLISH}")
        ways.append(({TEMPLATES: english}, FROM_ENGLISH))
    drawn = [_known(stage, seed, statements, way) for way, _ in ways]
    words = tuple(dict.fromkeys(word for each in (spec, *(own for own, _, _ in drawn)) for word in each.words))
    worded = tuple(_ids_in(words, own)[manuals] for own, manuals, _ in drawn)
    rows, maps = worded[0], drawn[0][2]
    spoken = np.bincount(rows.ravel(), minlength=spec.vocabulary_size) > 0
    spoken[0] = False
    places, beside = _seen(stage, spec, _ids_in(spec.words, drawn[0][0])[maps], spoken, seed)
    return Renderings(words, rows, worded, tuple(weight for _, weight in ways), places, beside)


def statements_found(stage: Stage, segmenter: Segmenter) -> dict[str, dict[str, float]]:
    """Evaluation set → way of writing → part of its manuals divided as statements are, see `exactness`."""
    found = {}
    for name in stage.sets:
        with closing(games_of(stage, name)) as vec:
            found[name] = exactness(vec.spec, segmenter, held_out(vec))
    return found


def facts_found(stage: Stage, edges: Delexicalised) -> dict[str, dict[str, float]]:
    """Evaluation set → "as written", and way of writing → part of its manuals' facts that are put together rightly.

    Nothing where games do not have HasFacts.
    """
    found: dict[str, dict[str, float]] = {}
    for name in stage.sets:
        for layout in ({}, *env_entry(stage.games.id).in_layouts()):
            with closing(games_of(stage, name, worded=layout)) as vec:
                games = find_capability(vec, HasFacts)
                if games is None:
                    return {}
                pieces = edges(torch.from_numpy(held_out(vec))).ids.numpy()
                right = games.fact_accuracy(partial(shared_pieces, pieces))
            if right is not None:
                found.setdefault(name, {})[layout.get("layout", "as written")] = right
    return found


def shared_pieces(pieces: np.ndarray, subjects: np.ndarray, names: np.ndarray) -> np.ndarray:
    """[U, M, N] how often pieces [U, P, L] have each of some words [M] beside words of each name [N, W]."""
    has = (pieces[..., None] == subjects).any(2).astype(np.int64)  # [U, P, M]
    named = ((pieces[..., None, None] == names) & (names != 0)).any(2).sum(3)  # [U, P, N]
    return has.transpose(0, 2, 1) @ named


def check_known(env: str, statements: str) -> None:
    """Raise a ConfigurationError unless statements are known in this way, see `_known`."""
    known = check_choice("way to find statements to learn from", statements, (ROWS, STOPS))
    if known == STOPS and PARAGRAPH not in env_entry(env).in_layouts():
        raise ConfigurationError(f"{env} writes no paragraphs to learn from: leave out --statements {STOPS}")


def _known(
    stage: Stage, seed: int, statements: str, options: Mapping[str, str]
) -> tuple[EnvSpec, np.ndarray, np.ndarray]:
    """Manuals of training games, whose statements are known.

    `statements` are ROWS, as the world writes them; or STOPS: it writes paragraphs, whose sentences are the statements,
    so that nothing but punctuation shows where one ends.

    Returns:
        The spec of these games, manuals [N, S, L] with a statement a row, and maps [N, H, W, K].
    """
    check_known(stage.games.id, statements)
    worded = env_entry(stage.games.id).in_layouts()[0] if statements == ROWS else PARAGRAPH
    with closing(games_of(stage, worded={**worded, **options})) as vec:
        manuals, maps = _drawn(vec, seed)
        if statements == STOPS:
            manuals = Stops(vec.spec)(torch.from_numpy(manuals)).ids.numpy()
        return vec.spec, manuals, maps


def games_of(stage: Stage, evaluation_set: str | None = None, worded: Mapping[str, str] | None = None) -> VectorEnv:
    """Games of a stage with these options of how they are worded; None: each statement has a row."""
    worded = env_entry(stage.games.id).in_layouts()[0] if worded is None else worded
    games = stage.games if evaluation_set is None else stage.sets[evaluation_set]
    return games.but(**worded).make_vec(GAMES)


def _drawn(vec: VectorEnv, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Manuals [N, S, L] and maps [N, H, W, K] of many games: the same games however they are worded."""
    found = []
    for k in range(ROUNDS):
        observation, _ = vec.reset(seed=seed + k * GAMES)
        found.append([_shown(vec, observation, name) for name in ("manual", vec.spec.grid.name)])
    manuals, maps = map(np.concatenate, zip(*found, strict=True))
    return manuals, maps


def held_out(vec: VectorEnv) -> np.ndarray:
    """Return manuals [N, S, L] that no training has."""
    return _shown(vec, vec.reset(seed=HELD_OUT)[0], "manual")


def _shown(vec: VectorEnv, observation: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """A field of all games and agents, [N, …] ids, a copy."""
    return observation[name].reshape(-1, *vec.spec[name].shape).copy()


def _seen(
    stage: Stage, spec: EnvSpec, maps: np.ndarray, spoken: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The places of words on maps, those of some training games and of all evaluation sets.

    Args:
        stage: whose.
        spec: of the stage.
        maps: [N, H, W, K] of training.
        spoken: [V] bool, the words that training's manuals have.
        seed: of the games of evaluation sets.

    Returns:
        [V] where in an occupant a word is shown most often, counted from 1, and 0 for nowhere; and [V] bool, whether
        beside one of those.
    """
    shown, beside = places_shown(spec, maps, spoken)
    for name in env_entry(stage.games.id).evaluation.sets:
        with closing(games_of(stage, name)) as vec:
            maps = _shown(vec, vec.reset(seed=seed)[0], vec.spec.grid.name)
            more = places_shown(spec, _ids_in(spec.words, vec.spec)[maps], spoken)
        shown, beside = shown + more[0], beside | more[1]
    return np.where(shown.any(1), shown.argmax(1) + 1, 0), beside


def places_shown(spec: EnvSpec, maps: np.ndarray, spoken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts [V, W] of how often maps [N, H, W, K] show each word in each place of an occupant that is an entity.

    And [V] bool, whether a word is shown in one occupant with another that is `spoken`, [V] bool.
    """
    grid = spec.grid
    words = maps.reshape(-1, grid.words_per_occupant).astype(np.int64)
    words = words[~np.isin(words[:, 0], (*grid.scenery_ids, *grid.avatar_ids))]
    counts = [np.bincount(column[column > 0], minlength=spec.vocabulary_size) for column in words.T]
    others = spoken[words].sum(1, keepdims=True) - spoken[words]
    beside = np.bincount(words[others > 0], minlength=spec.vocabulary_size) > 0
    return np.stack(counts, 1), beside


def _ids_in(words: Sequence[str], other: EnvSpec) -> np.ndarray:
    """[V'] the place among words of each word of another world, which says the same in other words."""
    if tuple(words) == other.words:
        return np.arange(other.vocabulary_size)
    place = {word: i for i, word in enumerate(words)}
    return np.array([0, *(place[word] for word in other.words[1:])])
