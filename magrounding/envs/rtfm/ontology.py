"""Tasks of RTFM; its monsters, items, elements and teams, and their words (facts of Zhong et al. 2020, appendix G)."""

from __future__ import annotations

from dataclasses import dataclass

from magrounding.brief import brief


@dataclass(frozen=True)
class Task:
    """Entities of an episode and the words of its manual.

    Attributes:
        group: many-to-one assignments (3 monsters a team, 2 modifiers an element) instead of one-to-one.
        moving: monsters move and chase ("dyna").
        language: templated language instead of plain statements ("nl").
        distractor_monster, distractor_item: whether they are on the map.
        letters: a rock-paper-scissors split instead of all this.
        layout, constructions: how a manual is worded, where the options of the same names do not say.
    """

    group: bool = False
    moving: bool = False
    language: bool = False
    distractor_monster: bool = True
    distractor_item: bool = True
    letters: str = ""
    layout: str = "statements"
    constructions: str = "none"

    def monsters(self, agents: int) -> int:
        """Return the number of monsters: a target for each agent, and perhaps a distractor; or the dragon."""
        return 1 if self.letters else agents + self.distractor_monster

    def items(self, agents: int) -> int:
        """Return the number of items."""
        return 3 if self.letters else agents + self.distractor_item


TASKS = {
    "simple_stationary_single_monster": Task(distractor_monster=False),
    "simple_stationary_single_item": Task(distractor_item=False),
    "simple_stationary": Task(),
    "simple": Task(moving=True),
    "simple_nl": Task(moving=True, language=True),
    "stationary": Task(group=True),
    "stationary_nl": Task(group=True, language=True),
    "group": Task(group=True, moving=True),
    "nl": Task(group=True, moving=True, language=True),
}
"""RTFM (SILG's stages 1–4 are simple_stationary, simple, group, nl)."""

STAGES = {
    "s1": Task(distractor_monster=False, distractor_item=False),
    "s2": Task(),
    "s3": Task(moving=True),
    "s4": Task(moving=True, group=True),
    "s5": Task(moving=True, group=True, language=True),
    "s6": Task(moving=True, group=True, language=True, layout="paragraph", constructions="all"),
    "s2g": Task(group=True),  # behind the others, as seeds of runs derive from a stage's place
}
"""Multi-agent RTFM (Ding et al. 2023, appendix A.1); S6: S5 as running text, with all constructions; S2g: S2 with the
groups of S4, the simplest stage in which agents that read different statements have to tell them."""

ROCK_PAPER_SCISSORS = {
    name: Task(moving=True, letters=name) for name in ("permutation", "released", "new_edge", "new_node")
}

TRAIN, EVAL, ALL = range(3)
SPLITS = {
    "train": TRAIN,
    "eval": EVAL,
    "eval_new": ALL,
    "eval_paraphrase": EVAL,
    "eval_construction": EVAL,
    "eval_minimal": EVAL,
}
"""Split → which side its assignments come from (`eval_new` has words of its own, so all of theirs are unseen)."""
PROSE_SPLITS = ("eval_construction", "eval_minimal")
"""Splits of manuals with constructions alone: held-out ones; twins of the same words and opposite meaning."""
LETTER_SPLITS = ("train", "eval")
"""Splits of rock-paper-scissors."""


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

NAMES = (*TRAINING.monsters, *TRAINING.modifiers, *TRAINING.nouns, *UNSEEN.monsters, *UNSEEN.modifiers, *UNSEEN.nouns)
MEANINGFUL = frozenset((*NAMES, *ELEMENTS, *" ".join(TEAMS).split(), *GRID_WORDS, DRAGON)) - {"of", "the"}
"""Words that name something of the game, which sentences have by slots alone."""


def num_statements(task: Task) -> int:
    """Statements of a manual: one about each element and each team, or about each letter."""
    return 3 if task.letters else len(ELEMENTS) + len(TEAMS)


def statement_of_letters(winner: str, loser: str) -> str:
    """Return a manual's statement about two letters of rock-paper-scissors."""
    return f"{winner} {BEATS} {loser} {STOP}"
