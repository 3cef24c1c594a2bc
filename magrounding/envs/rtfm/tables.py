"""The tables that a world's kernels read: assignments of its split, words, and every sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from magrounding.envs.rtfm import arrays, ontology, splits
from magrounding.envs.rtfm.constructions import FILLER, GOAL, MODIFIER, PLAIN, TEAM, Template
from magrounding.envs.rtfm.games import RtfmGame
from magrounding.envs.rtfm.sentences import Sentences, longest
from magrounding.envs.rtfm.text import sentence_table
from magrounding.vocabulary import Vocabulary, is_punctuation

_NOTHING = np.zeros((1, 1, 1), np.int16)
_SLOTS = {
    "{a}": arrays.FIRST_LIST,
    "{b}": arrays.SECOND_LIST,
    "{ab}": arrays.BOTH_LISTS,
    "{A}": arrays.FIRST_NAME,
    "{B}": arrays.SECOND_NAME,
}
_KINDS = (MODIFIER, TEAM, FILLER)
MOST_CLAIMS = 4

_NUMBERS = np.zeros((1, 1, 1), np.int64)
_NO_PROSE = arrays.Prose(_NOTHING[0], _NUMBERS[None], _NOTHING[0], _NUMBERS, _NOTHING, 0)
"""Tables without templates, of rock-paper-scissors."""


def make_tables(game: RtfmGame, sentences: Sentences) -> arrays.Tables:
    """Everything that generation and description look up for one task, split and size of map."""
    background = np.zeros((game.size, game.size, 2 * game.occupants), np.int16)
    background[..., 0] = ontology.WALL_ID
    background[1:-1, 1:-1, 0] = ontology.EMPTY_ID
    tables = _letters(game) if game.kind.letters else _monsters(game, sentences)
    return tables._replace(background=background.reshape(-1))


@lru_cache(maxsize=8)
def _monsters(game: RtfmGame, sentences: Sentences) -> arrays.Tables:
    """Sentences about all groups of monsters take 20 ms; batches of the same game share them."""
    task, vocabulary = game.kind, game.describe().vocabulary
    words = ontology.UNSEEN if game.split == "eval_new" else ontology.TRAINING
    stream = game.resolved_layout == "stream"

    def table(kind: str, lists: Sequence[Sequence[str]], names: Sequence[str], stream: bool) -> np.ndarray:
        length = longest(sentences.plain(kind), kind, len(lists[0]), stream)
        return sentence_table(vocabulary, sentences.plain(kind, game.split), length, lists, names, stream=stream)

    teams, elements = splits.assignment_tables(task.group)
    team_lists, monsters = _lists(teams, words.monsters)
    element_lists, modifiers = _lists(elements, words.modifiers)
    return arrays.Tables(
        teams=teams,
        elements=elements,
        element_orders=splits.group_table(4, 4)[:, :, 0].copy(),
        triples=_NOTHING[0],
        monster_words=_encode(vocabulary, words.monsters),
        modifier_words=_encode(vocabulary, words.modifiers),
        noun_words=_encode(vocabulary, words.nouns),
        element_words=_encode(vocabulary, ontology.ELEMENTS),
        team_lists=team_lists,
        element_lists=element_lists,
        team_sentences=table(TEAM, monsters, ontology.TEAMS, stream),
        element_sentences=table(MODIFIER, modifiers, ontology.ELEMENTS, stream),
        goal_sentences=table(GOAL, [()], ontology.TEAMS, False),
        background=_NOTHING[0, 0],
        prose=make_prose(game, vocabulary, sentences, words),
    )


def _letters(game: RtfmGame) -> arrays.Tables:
    """Rock-paper-scissors: statement k of cycle P is sentence P of "element" k; there are no teams.

    Turning a cycle leaves it as it is, so a reassigned manual states it backwards: the only other cycle of its letters.
    """
    triples, vocabulary = splits.letter_triples(game.kind.letters, game.split), game.describe().vocabulary
    winner, loser = (1, 0) if game.manual == "reassigned" else (0, 1)
    cycles = [[ontology.LETTERS[letter] for letter in triple] for triple in triples]
    sentences = [
        ontology.statement_of_letters(cycle[(k + winner) % 3], cycle[(k + loser) % 3])
        for k in range(3)
        for cycle in cycles
    ]
    return arrays.Tables(
        teams=_NOTHING,
        elements=_NOTHING,
        element_orders=_NOTHING[0],
        triples=np.array([[vocabulary[letter] for letter in cycle] for cycle in cycles], np.int16),
        monster_words=_encode(vocabulary, (ontology.DRAGON,)),
        modifier_words=_NOTHING[0, 0],
        noun_words=_NOTHING[0, 0],
        element_words=_NOTHING[0, 0],
        team_lists=np.zeros((1, 0), np.int64),
        element_lists=np.repeat(np.arange(len(cycles))[:, None], 3, axis=1),
        team_sentences=_NOTHING[None],
        element_sentences=np.stack([*map(vocabulary.encode, sentences)]).reshape(1, 3, len(cycles), -1),
        goal_sentences=vocabulary.encode(ontology.DRAGON_GOAL)[None, None, None],
        background=_NOTHING[0, 0],
        prose=_NO_PROSE,
    )


def _encode(vocabulary: Vocabulary, words: tuple[str, ...]) -> np.ndarray:
    return np.array([vocabulary[word] for word in words], np.int16)


def _lists(groups: np.ndarray, words: tuple[str, ...]) -> tuple[np.ndarray, list[list[str]]]:
    """For groups [ways, groups, g] of members: the number [ways, groups] of each list, and the C lists by word."""
    members, numbers = np.unique(groups.reshape(-1, groups.shape[-1]), axis=0, return_inverse=True)
    return numbers.reshape(groups.shape[:2]), [sorted(words[m] for m in row) for row in members]


def make_prose(game: RtfmGame, vocabulary: Vocabulary, sentences: Sentences, words: ontology.Ontology) -> arrays.Prose:
    """The tables of a task and split, with the constructions that are switched on."""
    names, stream = game.resolved_constructions, game.resolved_layout == "stream"
    templates = sentences.drawn(names, game.split)
    classes = sentences.classes_of(game.split) if names else {}
    pools = [[_pool(templates, kind, groups) for groups in (0, 1, 2)] for kind in _KINDS]
    widest = max(len(pool) for of_kind in pools for pool in of_kind)
    deepest = max(len(ids) for of_kind in pools for pool in of_kind for ids in pool)
    table = np.zeros((len(pools), 3, widest, 1 + deepest), np.int64)
    for k, of_kind in enumerate(pools):
        for groups, pool in enumerate(of_kind):
            for c, ids in enumerate(pool):
                table[k, groups, c, : 1 + len(ids)] = len(ids), *ids
    orders = [sorted(range(len(listed)), key=listed.__getitem__) for listed in (words.modifiers, words.monsters)]
    members = [[vocabulary[word] for word in listed] for listed in (words.modifiers, words.monsters)]
    return arrays.Prose(
        tokens=_pad(
            [_encode_template(template.text, vocabulary, list(classes), stream) for template in templates], np.int16
        ),
        pools=table,
        classes=_pad([[len(of), *(vocabulary[word] for word in of)] for of in classes.values()] or [[1, 0]], np.int16),
        members=np.stack([_pad(orders, np.int64, -1), _pad(members, np.int64)], axis=1),
        name_words=np.stack(
            [[vocabulary.encode(name, 4) for name in (*of, "")[:4]] for of in (ontology.ELEMENTS, ontology.TEAMS)]
        ),
        comma=0 if stream else vocabulary[","],
    )


def make_claims(game: RtfmGame, sentences: Sentences) -> np.ndarray:
    """[T, C, 4] mention, group, name and polarity of each claim of each template, −1 behind the last."""
    templates = sentences.drawn(game.resolved_constructions, game.split)
    claims = np.full((len(templates), MOST_CLAIMS, 4), -1, np.int64)
    for t, template in enumerate(templates):
        for c, claim in enumerate(template.claims):
            claims[t, c] = claim.mention, claim.group, claim.name, claim.polarity
    return claims


def _pool(templates: tuple[Template, ...], kind: str, groups: int) -> list[list[int]]:
    """The templates of one kind about so many groups, by construction, plain statements first."""
    found: dict[str, list[int]] = {}
    for t, template in enumerate(templates):
        if (template.kind, template.groups) == (kind, groups):
            found.setdefault(template.construction, []).append(t)
    return sorted(found.values(), key=lambda ids: templates[ids[0]].construction != PLAIN)


def _encode_template(text: str, vocabulary: Vocabulary, classes: list[str], stream: bool) -> list[int]:
    """Words as their ids, slots as negative numbers."""
    row = []
    for word in text.split():
        slot = re.sub(r"2\}$", "}", word)
        if slot in _SLOTS:
            row.append(_SLOTS[slot])
        elif word[1:-1] in classes and word.startswith("{"):
            row.append(arrays.FIRST_CLASS - classes.index(word[1:-1]))
        elif not (stream and is_punctuation(word)):
            row.append(vocabulary[word])
    return row


def _pad(rows: list[list[int]], kind: type, fill: int = 0) -> np.ndarray:
    table = np.full((len(rows), max(map(len, rows))), fill, kind)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table
