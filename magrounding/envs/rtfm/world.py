"""RTFMWorld: B games of RTFM, with one agent or several, or of rock-paper-scissors; and what its kernels look up."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from magrounding.capabilities import Relate
from magrounding.envs.compiled import OUTCOME_NAMES, CompiledWorld, added, salt_of
from magrounding.envs.render import Figure, Scene, sorted_figures
from magrounding.envs.rtfm import arrays, kernels, splits, telling
from magrounding.envs.rtfm.constructions import FILLER, GOAL, MODIFIER, PLAIN, TEAM, Template
from magrounding.envs.rtfm.facts import MOST_FACTS, RELATIONS, Fact, fact_accuracy, name_facts
from magrounding.envs.rtfm.games import RtfmGame
from magrounding.envs.rtfm.informed import Informed
from magrounding.envs.rtfm.ontology import (
    DRAGON,
    DRAGON_GOAL,
    ELEMENTS,
    EMPTY_ID,
    LETTERS,
    PROSE_SPLITS,
    SPLITS,
    TEAMS,
    TRAINING,
    UNSEEN,
    WALL_ID,
    Ontology,
    num_statements,
    statement_of_letters,
)
from magrounding.envs.rtfm.sentences import Sentences, longest
from magrounding.envs.rtfm.text import LAYOUTS, sentence_table
from magrounding.vocabulary import PAD, Vocabulary, is_punctuation

_NO_GAP = "without groups who reads about elements wins alone: choose s2g, s4 or s5, or another reading"
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

_TASK = "group moving language distractor_monster distractor_item letters layout constructions"
_OPTIONS = (  # like _TASK in the order in which salts have them
    "agents size split max_cycles sight occupants death drop_mode chase_range "
    "resample_text shuffle_manual manual layout constructions"
)


class RTFMWorld(CompiledWorld[RtfmGame]):
    """Read to Fight Monsters; arguments as of `CompiledWorld`."""

    def __init__(self, num_envs: int, game: RtfmGame, num_threads: int = 1) -> None:
        self._sentences = game.sentences
        rules = _make_rules(game, self._sentences.digest)
        tables = make_tables(game, self._sentences)
        slots = rules.agents + rules.monsters + rules.items
        split = (telling, telling) if game.is_split else (kernels, arrays)
        super().__init__(num_envs, game, num_threads, *split, rules, tables, slots)
        if game.reading == "kind" and not game.kind.group:
            warnings.warn(f"{_NO_GAP}, got reading='kind'", stacklevel=2)

    def _view(self, views: Any, observation: dict[str, np.ndarray]) -> Any:
        if self.game.is_split:
            lines = observation["manual"].reshape(self.num_envs, -1, observation["manual"].shape[-1])
            whole = np.zeros((self.num_envs, self._rules.statements, lines.shape[2]), np.int16)
            heard = whole.copy() if self.game.heard == "another" else whole
            observation = {**observation, "manual": whole, "heard": heard, "lines": lines}
        return super()._view(views, observation)

    def _memory(self) -> dict[str, np.ndarray]:
        split = {"manual": self._views.manual, "heard": self._views.heard} if self.game.is_split else {}
        return super()._memory() | split

    def entity_places(self) -> np.ndarray:
        """Return places of the monsters alive and of the items on the floor, [B, E, 2] float32."""
        entities = self._games.entities[:, self._rules.agents :]
        places = entities[..., [arrays.ROW, arrays.COLUMN]]
        return np.where(entities[..., arrays.PRESENT, None] == 1, places, -1).astype(np.float32)

    def facts(self, row: int) -> tuple[Fact, ...]:
        """Return the claims of the manual of one row, as written, also where it is reassigned: see `facts.Fact`."""
        return name_facts(self.fact_table()[row], self.game)

    def fact_table(self) -> np.ndarray:
        """Return the claims of all manuals [B, F, 9] int64, columns RELATION … NAME_LAST of `arrays`; −1 is none.

        Made anew with each call, from what the manuals were drawn from.
        """
        facts = np.full((self.num_envs, MOST_FACTS, arrays.NUM_FACT_COLUMNS), -1, np.int64)
        claims, manuals = make_claims(self.game, self._sentences), np.zeros_like(self._views.manual)
        kernels.write_facts(self._rules, self._tables, self._games, claims, manuals, facts)
        shown = self._views.manual.any(-1)  # a statement that is left out claims nothing
        facts[~np.take_along_axis(shown, np.maximum(facts[..., arrays.MANUAL_ROW], 0), 1)] = -1
        return facts

    def fact_accuracy(self, relate: Relate) -> float | None:
        words, table = self.spec.vocabulary, self.fact_table()
        ontology = UNSEEN if self.game.split == "eval_new" else TRAINING
        believed = np.full((self.num_envs, len(RELATIONS), len(ontology.monsters)), -1)
        for k, (subjects, names) in enumerate(((ontology.modifiers, ELEMENTS), (ontology.monsters, TEAMS))):
            width = max(len(name.split()) for name in names)
            related = relate(
                np.array([words[word] for word in subjects]), np.array([words.encode(name, width) for name in names])
            )
            if related is None:
                return None
            believed[:, k, : len(subjects)] = related.argmax(2)
        return fact_accuracy(table, believed)

    def events(self) -> dict[str, np.ndarray]:
        bodies = np.arange(self.num_agents) < self._rules.agents
        agents = np.where(bodies[:, None], self._games.entities[:, : self.num_agents], 0)
        return {"kills": agents[..., arrays.KILLS], "held": np.where(bodies, agents[..., arrays.HELD], -1)}

    def lines(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return which rows of a split manual were told, and which a game needs, each [B, S] bool; None of a whole one.

        Needed, from beginning to end, are those about the elements of targets and, where the names on the map do not
        tell, about the goal's team.
        """
        if not self.game.is_split:
            return None
        owners = self._games.scalars[:, telling.OWNER : telling.STATEMENT]
        return owners >= self.num_agents, Informed(self, np.arange(self.num_envs)).needed()

    def scene(self, row: int) -> Scene:
        entities, scalars, words = self._games.entities[row], self._games.scalars[row], self.spec.words
        n, items = self._rules.agents, self._rules.agents + self._rules.monsters
        texts = self.text(row)
        figures = []
        for slot, entity in enumerate(entities):
            if entity[arrays.PRESENT]:
                at = int(entity[arrays.ROW]), int(entity[arrays.COLUMN])
                if slot < n:
                    figures.append(Figure(*at, "agent", str(slot)))
                else:
                    first, second = (words[entity[column]] for column in (arrays.WORD_1, arrays.WORD_2))
                    quality, name = (first, second) if entity[arrays.WORD_2] != PAD else ("", first)
                    figures.append(Figure(*at, "monster" if slot < items else "item", name, quality))
        shown = [arrays.WORD_1, arrays.WORD_2]
        held = [entities[item, shown] if item >= 0 else () for item in entities[:n, arrays.HELD]]
        walls = np.ones(self.spec.grid.shape[:2], np.bool_)
        walls[1:-1, 1:-1] = False
        return Scene(
            walls=walls,
            figures=sorted_figures(figures),
            alive=tuple(bool(agent[arrays.PRESENT]) for agent in entities[:n]),
            inventories=tuple(self.spec.vocabulary.decode(item) for item in held),
            goal=str(texts["goal"]),
            manual=tuple(texts["manual"]),
            step=int(scalars[arrays.STEP]),
            max_cycles=self.spec.max_cycles,
            outcome=OUTCOME_NAMES[scalars[arrays.OUTCOME]],
        )


def _make_rules(game: RtfmGame, digest: str | None) -> arrays.Rules:
    n, task = game.bodies, game.kind
    options = tuple(getattr(game, name) for name in _OPTIONS.split())
    if digest is not None:  # which names documents as when there was no such option; the file may be another tomorrow
        options = *options, digest
    later = added(game, f"{_OPTIONS} task stage templates omission distraction decoys talk")
    return arrays.Rules(
        agents=n,
        players=game.agents,
        monsters=task.monsters(n),
        items=task.items(n),
        size=game.size,
        occupants=game.occupants,
        max_cycles=game.max_cycles,
        moving=task.moving,
        individual_death=game.death == "individual",
        leave_item=game.drop_mode == "left",
        resample_text=game.resample_text,
        shuffle_manual=game.shuffle_manual,
        statements=num_statements(task),
        layout=LAYOUTS.index(game.resolved_layout),
        prose=bool(game.resolved_constructions),
        pairs=game.split in PROSE_SPLITS,
        minimal=game.split == "eval_minimal",
        distinct_names=game.distinct_names,
        reading=arrays.READINGS.index(game.reading),
        heard=arrays.HEARD.index(game.heard),
        tells=-1 if game.tells is None else game.tells,
        reassigned=game.manual == "reassigned",
        letters=bool(task.letters),
        sight_squared=-1.0 if game.sight is None else float(game.sight) ** 2,
        chase_squared=-1.0 if game.chase_range is None else float(game.chase_range) ** 2,
        side=SPLITS[game.split],
        salt=salt_of(task, _TASK, *options, *later),
        omission=float(game.omission),
        distraction=float(game.distraction),
        decoys=float(game.decoys),
        talk=float(game.talk),
    )


def make_tables(game: RtfmGame, sentences: Sentences) -> arrays.Tables:
    """Everything that generation and description look up for one task, split and size of map."""
    return _letters(game) if game.kind.letters else _monsters(game, sentences)


def _background(game: RtfmGame) -> np.ndarray:
    """The bare map, flat."""
    cells = np.zeros((game.size, game.size, 2 * game.occupants), np.int16)
    cells[..., 0] = WALL_ID
    cells[1:-1, 1:-1, 0] = EMPTY_ID
    return cells.reshape(-1)


@lru_cache(maxsize=8)
def _monsters(game: RtfmGame, sentences: Sentences) -> arrays.Tables:
    """Sentences about all groups of monsters take 20 ms; batches of the same game share them."""
    task, vocabulary = game.kind, game.describe().vocabulary
    words = UNSEEN if game.split == "eval_new" else TRAINING
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
        element_words=_encode(vocabulary, ELEMENTS),
        team_lists=team_lists,
        element_lists=element_lists,
        team_sentences=table(TEAM, monsters, TEAMS, stream),
        element_sentences=table(MODIFIER, modifiers, ELEMENTS, stream),
        goal_sentences=table(GOAL, [()], TEAMS, False),
        background=_background(game),
        prose=make_prose(game, vocabulary, sentences, words),
    )


def _letters(game: RtfmGame) -> arrays.Tables:
    """Rock-paper-scissors: statement k of cycle P is sentence P of "element" k; there are no teams.

    Turning a cycle leaves it as it is, so a reassigned manual states it backwards: the only other cycle of its letters.
    """
    triples, vocabulary = splits.letter_triples(game.kind.letters, game.split), game.describe().vocabulary
    winner, loser = (1, 0) if game.manual == "reassigned" else (0, 1)
    cycles = [[LETTERS[letter] for letter in triple] for triple in triples]
    sentences = [
        statement_of_letters(cycle[(k + winner) % 3], cycle[(k + loser) % 3]) for k in range(3) for cycle in cycles
    ]
    return arrays.Tables(
        teams=_NOTHING,
        elements=_NOTHING,
        element_orders=_NOTHING[0],
        triples=np.array([[vocabulary[letter] for letter in cycle] for cycle in cycles], np.int16),
        monster_words=_encode(vocabulary, (DRAGON,)),
        modifier_words=_NOTHING[0, 0],
        noun_words=_NOTHING[0, 0],
        element_words=_NOTHING[0, 0],
        team_lists=np.zeros((1, 0), np.int64),
        element_lists=np.repeat(np.arange(len(cycles))[:, None], 3, axis=1),
        team_sentences=_NOTHING[None],
        element_sentences=np.stack([*map(vocabulary.encode, sentences)]).reshape(1, 3, len(cycles), -1),
        goal_sentences=vocabulary.encode(DRAGON_GOAL)[None, None, None],
        background=_background(game),
        prose=_NO_PROSE,
    )


def _encode(vocabulary: Vocabulary, words: tuple[str, ...]) -> np.ndarray:
    return np.array([vocabulary[word] for word in words], np.int16)


def _lists(groups: np.ndarray, words: tuple[str, ...]) -> tuple[np.ndarray, list[list[str]]]:
    """For groups [ways, groups, g] of members: the number [ways, groups] of each list, and the C lists by word."""
    members, numbers = np.unique(groups.reshape(-1, groups.shape[-1]), axis=0, return_inverse=True)
    return numbers.reshape(groups.shape[:2]), [sorted(words[m] for m in row) for row in members]


def make_prose(game: RtfmGame, vocabulary: Vocabulary, sentences: Sentences, words: Ontology) -> arrays.Prose:
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
        name_words=np.stack([[vocabulary.encode(name, 4) for name in (*of, "")[:4]] for of in (ELEMENTS, TEAMS)]),
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
