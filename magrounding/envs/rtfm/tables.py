"""The tables that a world's kernels read: assignments of its split, words, and every sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from magrounding.envs.rtfm import splits
from magrounding.envs.rtfm.arrays import Tables
from magrounding.envs.rtfm.ontology import (
    DRAGON,
    DRAGON_GOAL,
    ELEMENTS,
    EMPTY_ID,
    LETTERS,
    TEAMS,
    TRAINING,
    UNSEEN,
    WALL_ID,
    statement_of_letters,
)
from magrounding.envs.rtfm.prose_tables import NO_PROSE, make_prose
from magrounding.envs.rtfm.text import sentence_table
from magrounding.vocabulary import Vocabulary

if TYPE_CHECKING:
    from magrounding.envs.rtfm.games import RtfmGame

_NOTHING = np.zeros((1, 1, 1), np.int16)


def make_tables(game: RtfmGame, vocabulary: Vocabulary) -> Tables:
    """Everything that generation and description look up for one task, split and size of map."""
    background = np.zeros((game.size, game.size, 2 * game.occupants), np.int16)
    background[..., 0] = WALL_ID
    background[1:-1, 1:-1, 0] = EMPTY_ID
    make = _letters if game.kind.letters else _monsters
    return make(game, vocabulary)._replace(background=background.reshape(-1))


def _monsters(game: RtfmGame, vocabulary: Vocabulary) -> Tables:
    task = game.kind
    words = UNSEEN if game.split == "eval_new" else TRAINING
    held_out, stream = game.split == "eval_paraphrase", game.resolved_layout == "stream"
    teams, elements = splits.assignment_tables(task.group)
    team_lists, monsters = _lists(teams, words.monsters)
    element_lists, modifiers = _lists(elements, words.modifiers)
    return Tables(
        teams=teams,
        elements=elements,
        element_orders=splits.group_table(4, 4)[:, :, 0].copy(),
        triples=_NOTHING[0],
        monster_words=_encode(vocabulary, words.monsters),
        modifier_words=_encode(vocabulary, words.modifiers),
        noun_words=_encode(vocabulary, words.nouns),
        element_words=_encode(vocabulary, ELEMENTS),
        team_lists=team_lists,
        element_lists=element_lists,
        team_sentences=sentence_table(vocabulary, "team", task.language, held_out, monsters, TEAMS, stream=stream),
        element_sentences=sentence_table(
            vocabulary, "modifier", task.language, held_out, modifiers, ELEMENTS, stream=stream
        ),
        goal_sentences=sentence_table(vocabulary, "goal", task.language, held_out, [()], TEAMS),
        background=_NOTHING[0, 0],
        prose=make_prose(game, vocabulary, words),
    )


def _letters(game: RtfmGame, vocabulary: Vocabulary) -> Tables:
    """Rock-paper-scissors: statement k of cycle P is sentence P of "element" k; there are no teams.

    Turning a cycle leaves it as it is, so a reassigned manual states it backwards: the only other cycle of its letters.
    """
    triples = splits.letter_triples(game.kind.letters, game.split)
    winner, loser = (1, 0) if game.manual == "reassigned" else (0, 1)
    sentences = [
        [statement_of_letters(LETTERS[row[(k + winner) % 3]], LETTERS[row[(k + loser) % 3]]) for row in triples]
        for k in range(3)
    ]
    rows = np.stack([vocabulary.encode(sentence) for of_k in sentences for sentence in of_k])
    cycles = np.arange(len(triples))
    return Tables(
        teams=_NOTHING,
        elements=_NOTHING,
        element_orders=_NOTHING[0],
        triples=np.array([[vocabulary[LETTERS[letter]] for letter in triple] for triple in triples], np.int16),
        monster_words=_encode(vocabulary, (DRAGON,)),
        modifier_words=_NOTHING[0, 0],
        noun_words=_NOTHING[0, 0],
        element_words=_NOTHING[0, 0],
        team_lists=np.zeros((1, 0), np.int64),
        element_lists=np.repeat(cycles[:, None], 3, axis=1),
        team_sentences=_NOTHING[None],
        element_sentences=rows.reshape(1, 3, len(triples), -1),
        goal_sentences=vocabulary.encode(DRAGON_GOAL)[None, None, None],
        background=_NOTHING[0, 0],
        prose=NO_PROSE,
    )


def _encode(vocabulary: Vocabulary, words: tuple[str, ...]) -> np.ndarray:
    return np.array([vocabulary[word] for word in words], np.int16)


def _lists(groups: np.ndarray, words: tuple[str, ...]) -> tuple[np.ndarray, list[list[str]]]:
    """For groups [ways, groups, g] of members: the number [ways, groups] of each list, and the C lists by word."""
    members, numbers = np.unique(groups.reshape(-1, groups.shape[-1]), axis=0, return_inverse=True)
    return numbers.reshape(groups.shape[:2]), [sorted(words[m] for m in row) for row in members]
