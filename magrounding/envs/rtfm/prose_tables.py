"""Templates as the kernels of `prose` read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from magrounding.envs.rtfm.arrays import (
    BOTH_LISTS,
    FIRST_CLASS,
    FIRST_LIST,
    FIRST_NAME,
    SECOND_LIST,
    SECOND_NAME,
    Prose,
)
from magrounding.envs.rtfm.constructions import FILLER, MODIFIER, PLAIN, TEAM, Template, templates_of, word_classes
from magrounding.envs.rtfm.ontology import ELEMENTS, TEAMS, Ontology
from magrounding.envs.rtfm.text import PUNCTUATION
from magrounding.vocabulary import Vocabulary

if TYPE_CHECKING:
    from magrounding.envs.rtfm.games import RtfmGame

_SLOTS = {"{a}": FIRST_LIST, "{b}": SECOND_LIST, "{ab}": BOTH_LISTS, "{A}": FIRST_NAME, "{B}": SECOND_NAME}
_KINDS = (MODIFIER, TEAM, FILLER)
MOST_CLAIMS = 4

_WORDS, _NUMBERS = np.zeros((1, 1), np.int16), np.zeros((1, 1), np.int64)
NO_PROSE = Prose(_WORDS, _NUMBERS[None, None], _WORDS, _NUMBERS[None], _WORDS[None], 0)
"""Tables without templates, of rock-paper-scissors."""


def make_prose(game: RtfmGame, vocabulary: Vocabulary, words: Ontology) -> Prose:
    """The tables of a task and split, with the constructions that are switched on."""
    names, language = game.resolved_constructions, game.kind.language
    stream = game.resolved_layout == "stream"
    templates = templates_of(names, language, game.split)
    classes = word_classes(game.split == "eval_paraphrase") if names else {}
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
    return Prose(
        tokens=_pad([_encode(template.text, vocabulary, list(classes), stream) for template in templates], np.int16),
        pools=table,
        classes=_pad([[len(of), *(vocabulary[word] for word in of)] for of in classes.values()] or [[1, 0]], np.int16),
        members=np.stack([_pad(orders, np.int64, -1), _pad(members, np.int64)], axis=1),
        name_words=np.stack([[vocabulary.encode(name, 4) for name in (*of, "")[:4]] for of in (ELEMENTS, TEAMS)]),
        comma=0 if stream else vocabulary[","],
    )


def make_claims(game: RtfmGame) -> np.ndarray:
    """[T, C, 4] mention, group, name and polarity of each claim of each template, −1 behind the last."""
    templates = templates_of(game.resolved_constructions, game.kind.language, game.split)
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


def _encode(text: str, vocabulary: Vocabulary, classes: list[str], stream: bool) -> list[int]:
    """Words as their ids, slots as negative numbers."""
    row = []
    for word in text.split():
        slot = re.sub(r"2\}$", "}", word)
        if slot in _SLOTS:
            row.append(_SLOTS[slot])
        elif word[1:-1] in classes and word.startswith("{"):
            row.append(FIRST_CLASS - classes.index(word[1:-1]))
        elif not (stream and word in PUNCTUATION):
            row.append(vocabulary[word])
    return row


def _pad(rows: list[list[int]], kind: type, fill: int = 0) -> np.ndarray:
    table = np.full((len(rows), max(map(len, rows))), fill, kind)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table
