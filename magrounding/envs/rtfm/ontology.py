"""Monsters, items, elements and teams of RTFM, and their words (facts of Zhong et al. 2020, appendix G)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from magrounding.brief import brief
from magrounding.envs.rtfm.constructions import construction_words, prose_shape
from magrounding.envs.rtfm.tasks import Task
from magrounding.envs.rtfm.text import layout_shape, sentence_length, template_words
from magrounding.vocabulary import Vocabulary

ELEMENTS = ("cold", "fire", "lightning", "poison")
TEAMS = ("star alliance", "order of the forest", "rebel enclave")


@dataclass(frozen=True)
class Ontology:
    """The names that an assignment speaks of. One-to-one tasks use the first 3 monsters and the first 4 modifiers."""

    __repr__ = brief

    monsters: tuple[str, ...]
    modifiers: tuple[str, ...]
    nouns: tuple[str, ...]


TRAINING = Ontology(
    monsters=("wolf", "jaguar", "panther", "goblin", "bat", "imp", "shaman", "ghost", "zombie"),
    modifiers=("grandmasters", "blessed", "shimmering", "gleaming", "fanatical", "mysterious", "soldiers", "arcane"),
    nouns=("sword", "axe", "morningstar", "polearm", "knife", "katana", "cutlass", "spear"),
)
UNSEEN = Ontology(
    monsters=("tiger", "bear", "puma", "elf", "vampire", "gremlin", "witch", "specter", "robot"),
    modifiers=("superstars", "sacred", "glittering", "shiny", "obsessive", "bizarre", "secret", "esoteric"),
    nouns=("sabre", "tomahawk", "sunglow"),
)
"""Words of `eval_new`, never shown in training."""

_GRID_WORDS = ("empty", "wall", "fog", "me", "ally")
EMPTY_ID, WALL_ID, FOG_ID, ME_ID, ALLY_ID = range(1, 6)
"""Both vocabularies begin with the words of the grid, so that kernels may know their ids."""

LETTERS = tuple("abcdefghijklmnopqrst")
DRAGON, BEATS, STOP = "dragon", "beats", "."
DRAGON_GOAL = "slay the dragon"


@cache
def rtfm_vocabulary() -> Vocabulary:
    """Every word of every task, stage and split, held-out templates' too: an embedding table never changes size."""
    names = [word for each in (TRAINING, UNSEEN) for word in (*each.monsters, *each.modifiers, *each.nouns)]
    words = [*_GRID_WORDS, *names, *ELEMENTS, *" ".join(TEAMS).split(), *template_words()]
    return Vocabulary(dict.fromkeys(words))


@cache
def prose_vocabulary() -> Vocabulary:
    """The same words with the same ids, and behind them those of the constructions."""
    return Vocabulary(dict.fromkeys([*rtfm_vocabulary().words[1:], *construction_words()]))


@cache
def rock_paper_scissors_vocabulary() -> Vocabulary:
    """Vocabulary of rock-paper-scissors: there the letter "a" is a weapon, not an article."""
    return Vocabulary([*_GRID_WORDS, *LETTERS, DRAGON, BEATS, STOP, *DRAGON_GOAL.split()[:2]])


def num_statements(task: Task) -> int:
    """Statements of a manual: one about each element and each team, or about each letter."""
    return 3 if task.letters else len(ELEMENTS) + len(TEAMS)


def document_shape(task: Task, layout: str = "statements", constructions: tuple[str, ...] = ()) -> tuple[int, int, int]:
    """Rows of a manual, words of a row and words of a goal."""
    if task.letters:
        return 3, len(statement_of_letters("a", "b").split()), len(DRAGON_GOAL.split())
    monsters, modifiers = (3, 2) if task.group else (1, 1)
    stream = layout == "stream"
    about_team = sentence_length("team", task.language, monsters, TEAMS, stream=stream)
    about_element = sentence_length("modifier", task.language, modifiers, ELEMENTS, stream=stream)
    if constructions:
        rows, length = prose_shape(layout, constructions, task.language, (modifiers, monsters))
    else:
        rows, length = layout_shape(layout, [about_element] * len(ELEMENTS) + [about_team] * len(TEAMS))
    return rows, length, sentence_length("goal", task.language, 0, TEAMS)


def statement_of_letters(winner: str, loser: str) -> str:
    """Return a manual's statement about two letters of rock-paper-scissors."""
    return f"{winner} {BEATS} {loser} {STOP}"
