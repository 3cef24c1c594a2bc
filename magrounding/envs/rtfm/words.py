"""Vocabularies of the worlds, and the shapes of their manuals and goals."""

from __future__ import annotations

from functools import cache

from magrounding.envs.rtfm.constructions import KINDS, PLAIN, words_of
from magrounding.envs.rtfm.ontology import (
    BEATS,
    DRAGON,
    DRAGON_GOAL,
    ELEMENTS,
    GRID_WORDS,
    LETTERS,
    STOP,
    TEAMS,
    TRAINING,
    UNSEEN,
    num_statements,
    statement_of_letters,
)
from magrounding.envs.rtfm.sentences import Sentences, our_sentences, prose_shape
from magrounding.envs.rtfm.tasks import Task
from magrounding.envs.rtfm.text import COMMA, layout_shape, sentence_length
from magrounding.vocabulary import Vocabulary


@cache
def rtfm_vocabulary() -> Vocabulary:
    """Every word of every task, stage and split, held-out templates' too: an embedding table never changes size."""
    names = [word for each in (TRAINING, UNSEEN) for word in (*each.monsters, *each.modifiers, *each.nouns)]
    plain = [t for language in (False, True) for t in our_sentences(language).templates if t.construction == PLAIN]
    words = [*GRID_WORDS, *names, *ELEMENTS, *" ".join(TEAMS).split(), COMMA, *words_of(plain)]
    return Vocabulary(dict.fromkeys(words))


@cache
def prose_vocabulary() -> Vocabulary:
    """The same words with the same ids, and behind them those of the constructions."""
    return extended(rtfm_vocabulary(), our_sentences(True))


def extended(vocabulary: Vocabulary, sentences: Sentences) -> Vocabulary:
    """Return a vocabulary whose words keep their ids, and behind them those that sentences add."""
    return Vocabulary(dict.fromkeys([*vocabulary.words[1:], *sentences.words]))


@cache
def rock_paper_scissors_vocabulary() -> Vocabulary:
    """Vocabulary of rock-paper-scissors: there the letter "a" is a weapon, not an article."""
    return Vocabulary([*GRID_WORDS, *LETTERS, DRAGON, BEATS, STOP, *DRAGON_GOAL.split()[:2]])


def document_shape(
    task: Task, sentences: Sentences, layout: str = "statements", constructions: tuple[str, ...] = ()
) -> tuple[int, int, int]:
    """Rows of a manual, words of a row and words of a goal."""
    if task.letters:
        return num_statements(task), len(statement_of_letters("a", "b").split()), len(DRAGON_GOAL.split())
    members = (2, 3, 0) if task.group else (1, 1, 0)
    about_element, about_team, goal = (
        sentence_length(sentences.plain(kind), count, names, stream=layout == "stream" and count > 0)
        for kind, count, names in zip(KINDS, members, (ELEMENTS, TEAMS, TEAMS), strict=True)
    )
    if constructions:
        rows, length = prose_shape(sentences, layout, constructions, members[:2])
    else:
        rows, length = layout_shape(layout, [about_element] * len(ELEMENTS) + [about_team] * len(TEAMS))
    return rows, length, goal
