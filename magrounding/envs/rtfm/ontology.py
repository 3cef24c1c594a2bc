"""Monsters, items, elements and teams of RTFM, and their words (facts of Zhong et al. 2020, appendix G)."""

from __future__ import annotations

from dataclasses import dataclass

from magrounding.brief import brief
from magrounding.envs.rtfm.tasks import Task

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

GRID_WORDS = ("empty", "wall", "fog", "me", "ally")
EMPTY_ID, WALL_ID, FOG_ID, ME_ID, ALLY_ID = range(1, 6)
"""Both vocabularies begin with the words of the grid, so that kernels may know their ids."""

LETTERS = tuple("abcdefghijklmnopqrst")
DRAGON, BEATS, STOP = "dragon", "beats", "."
DRAGON_GOAL = "slay the dragon"

_NAMES = (*TRAINING.monsters, *TRAINING.modifiers, *TRAINING.nouns, *UNSEEN.monsters, *UNSEEN.modifiers, *UNSEEN.nouns)
MEANINGFUL = frozenset((*_NAMES, *ELEMENTS, *" ".join(TEAMS).split(), *GRID_WORDS, DRAGON)) - {"of", "the"}
"""Words that name something of the game, which sentences have by slots alone."""


def num_statements(task: Task) -> int:
    """Statements of a manual: one about each element and each team, or about each letter."""
    return 3 if task.letters else len(ELEMENTS) + len(TEAMS)


def statement_of_letters(winner: str, loser: str) -> str:
    """Return a manual's statement about two letters of rock-paper-scissors."""
    return f"{winner} {BEATS} {loser} {STOP}"
