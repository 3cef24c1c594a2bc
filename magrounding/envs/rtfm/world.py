"""RTFMWorld: B games of RTFM, with one agent or several, or of rock-paper-scissors."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from magrounding.envs.compiled import CompiledWorld
from magrounding.envs.render import Figure, Scene
from magrounding.envs.rtfm import kernels, splits
from magrounding.envs.rtfm.arrays import (
    ACTION_NAMES,
    COLUMN,
    HELD,
    LOST,
    NUM_COLUMNS,
    NUM_SCALARS,
    OUTCOME,
    PRESENT,
    ROW,
    STEP,
    TEAMMATE_WIDTH,
    TIMED_OUT,
    WON,
    WORD_1,
    WORD_2,
    Games,
    Results,
    Rules,
    Tables,
    Views,
)
from magrounding.envs.rtfm.ontology import (
    ALLY_ID,
    EMPTY_ID,
    FOG_ID,
    ME_ID,
    WALL_ID,
    rock_paper_scissors_vocabulary,
    rtfm_vocabulary,
)
from magrounding.envs.rtfm.tables import make_tables
from magrounding.envs.world import StepBuffers
from magrounding.errors import ConfigurationError, choose
from magrounding.observation import ObservationField, ObservationSpec
from magrounding.seeding import NUM_STREAMS
from magrounding.vocabulary import PAD, Vocabulary

if TYPE_CHECKING:
    from magrounding.envs.rtfm.tasks import Task


@dataclass(frozen=True)
class WorldOptions:
    """Options of a world.

    Attributes:
        agents: n.
        size: of the map, its ring of walls included.
        split: "train", "eval", "eval_new" (unseen words) or "eval_paraphrase" (held-out templates).
        max_cycles: steps after which a game is lost by time-out.
        sight: how far agents see (Euclidean); None for the whole map.
        occupants: how many occupants a cell shows, 1 or 2.
        death: "team" ends the game with the first death, "individual" lets the others play on.
        put_aside: "destroyed" or "left": what becomes of the item held when another is taken.
        chase_range: how far monsters sense agents (Euclidean); None for any distance.
        resample_text: draw new templates every step, as the released program does in training.
        shuffle_manual: put the statements in a random order each episode.
        manual: "true", or "reassigned" for a document that is false from end to end: the same words, sentences and
            order, but each team has the monsters of another, each element the modifiers of another, and each letter is
            beaten by the one it beats. The game and the goal stay as they were: for tests of reading.
    """

    agents: int = 1
    size: int = 6
    split: str = "train"
    max_cycles: int = 1000
    sight: float | None = None
    occupants: int = 2
    death: str = "team"
    put_aside: str = "destroyed"
    chase_range: float | None = 5
    resample_text: bool = False
    shuffle_manual: bool = True
    manual: str = "true"


class RTFMWorld(CompiledWorld):
    """Read to Fight Monsters.

    Args:
        num_envs: B.
        task: what is in the game and how it is told.
        options: see `WorldOptions`.
        num_threads: threads that share the rows; episodes do not depend on it.

    Raises:
        ConfigurationError: an option out of its range, or a map too small for its entities.
    """

    action_names = ACTION_NAMES
    time_limit_is_loss = True

    def __init__(self, num_envs: int, task: Task, options: WorldOptions, num_threads: int = 1) -> None:
        _check(task, options, num_threads)
        rules = _make_rules(task, options)
        num_entities = rules.agents + rules.monsters + rules.items
        interior = (options.size - 2) ** 2
        if num_entities > interior:
            raise ConfigurationError(
                f"a {options.size}×{options.size} map has room for {interior} entities, this game has {num_entities}; "
                "take a larger size or fewer agents"
            )
        vocabulary = rock_paper_scissors_vocabulary() if task.letters else rtfm_vocabulary()
        tables = make_tables(task, options, vocabulary)
        games = Games(
            np.zeros((num_envs, NUM_STREAMS), np.uint64),
            np.zeros((num_envs, NUM_SCALARS), np.int64),
            np.zeros((num_envs, num_entities, NUM_COLUMNS), np.int16),
        )
        super().__init__(
            num_envs,
            task,
            options,
            num_threads,
            spec=_make_spec(options, tables, vocabulary),
            vocabulary=vocabulary,
            kernels=kernels,
            rules=rules,
            tables=tables,
            games=games,
            agent_facts=5,
        )

    def _view(self, observation: dict[str, np.ndarray]) -> Views:
        grid = observation["grid"]
        flat = grid.reshape(*grid.shape[:2], -1)
        teammates = observation.get("teammates", np.zeros((len(grid), 1, 0, TEAMMATE_WIDTH), np.int16))
        rest = {key: observation[key] for key in Views._fields if key not in ("grid", "teammates")}
        return Views(flat, teammates=teammates, **rest)

    def _collect(self, out: StepBuffers) -> Results:
        return Results(*(getattr(out, name) for name in Results._fields))

    def entity_places(self) -> np.ndarray:
        """Monsters alive and items on the floor."""
        entities = self._games.entities[:, self.num_agents :]
        return np.where(entities[..., PRESENT, None] == 1, entities[..., [ROW, COLUMN]], -1).astype(np.float32)

    def scene(self, row: int) -> Scene:
        entities, scalars, words = self._games.entities[row], self._games.scalars[row], self.vocabulary.words
        n, items = self._rules.agents, self._rules.agents + self._rules.monsters
        texts = self.text(row)
        figures = []
        for slot, entity in enumerate(entities):
            if entity[PRESENT]:
                at = int(entity[ROW]), int(entity[COLUMN])
                if slot < n:
                    figures.append(Figure(*at, "agent", str(slot)))
                else:
                    first, second = (words[entity[column]] for column in (WORD_1, WORD_2))
                    quality, name = (first, second) if entity[WORD_2] != PAD else ("", first)
                    figures.append(Figure(*at, "monster" if slot < items else "item", name, quality))
        held = [entities[agent[HELD]] if agent[HELD] >= 0 else None for agent in entities[:n]]
        walls = np.ones((self.spec.height, self.spec.width), np.bool_)
        walls[1:-1, 1:-1] = False
        return Scene(
            walls=walls,
            figures=tuple(figures),
            alive=tuple(bool(agent[PRESENT]) for agent in entities[:n]),
            inventories=tuple(
                "" if item is None else self.vocabulary.decode((item[WORD_1], item[WORD_2])) for item in held
            ),
            goal=str(texts["goal"]),
            manual=tuple(texts["manual"]),
            step=int(scalars[STEP]),
            max_cycles=self.max_cycles,
            outcome={WON: "won", LOST: "lost", TIMED_OUT: "lost"}.get(int(scalars[OUTCOME]), ""),
        )


def _make_spec(options: WorldOptions, tables: Tables, vocabulary: Vocabulary) -> ObservationSpec:
    n, top, size = options.agents, len(vocabulary) - 1, options.size
    statements = tables.element_lists.shape[1] + tables.team_lists.shape[1]
    length = max(tables.element_sentences.shape[-1], tables.team_sentences.shape[-1])
    fields = [
        ObservationField("grid", (size, size, 2 * options.occupants), 0, top),
        ObservationField("position", (2,), -1, size - 1),
        ObservationField("manual", (statements, length), 0, top, shared=True),
        ObservationField("goal", (tables.goal_sentences.shape[-1],), 0, top, shared=True),
        ObservationField("inventory", (2,), 0, top),
        ObservationField("action_mask", (len(ACTION_NAMES),), 0, 1, "int8"),
    ]
    if n > 1:
        fields.append(ObservationField("teammates", (n - 1, TEAMMATE_WIDTH), -1, max(top, size)))
    return ObservationSpec(
        fields=tuple(fields),
        num_agents=n,
        num_actions=len(ACTION_NAMES),
        height=size,
        width=size,
        vocabulary_size=len(vocabulary),
        scenery_ids=(PAD, EMPTY_ID, WALL_ID, FOG_ID),
        avatar_ids=(ME_ID, ALLY_ID),
        words_per_occupant=2,
        words=vocabulary.words,
    )


def _check(task: Task, options: WorldOptions, num_threads: int) -> None:
    choose("split", options.split, ("train", "eval") if task.letters else tuple(splits.SPLITS))
    choose("death", options.death, ("team", "individual"))
    choose("put_aside", options.put_aside, ("destroyed", "left"))
    choose("manual", options.manual, ("true", "reassigned"))
    for name, value, low in (
        ("agents", options.agents, 1),
        ("size", options.size, 4),
        ("max_cycles", options.max_cycles, 1),
        ("num_threads", num_threads, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ConfigurationError(f"{name} must be an integer of at least {low}, got {value!r}")
    for name, flag in (("resample_text", options.resample_text), ("shuffle_manual", options.shuffle_manual)):
        if not isinstance(flag, bool):
            raise ConfigurationError(f"{name} must be True or False, got {flag!r}")
    if not isinstance(options.occupants, int) or options.occupants not in (1, 2):
        raise ConfigurationError(f"occupants must be 1 or 2, got {options.occupants!r}")
    for name, distance in (("sight", options.sight), ("chase_range", options.chase_range)):
        if distance is not None and not (isinstance(distance, int | float) and distance >= 0):
            raise ConfigurationError(f"{name} must be a distance of at least 0, or None for any, got {distance!r}")


def _make_rules(task: Task, options: WorldOptions) -> Rules:
    n = options.agents
    # One seed must name different documents in different configurations: a cache of encodings may see several.
    salt = int.from_bytes(hashlib.sha256(repr((task, astuple(options))).encode()).digest()[:7], "big")
    return Rules(
        agents=n,
        monsters=1 if task.letters else n + task.distractor_monster,
        items=3 if task.letters else n + task.distractor_item,
        targets=n,
        size=options.size,
        occupants=options.occupants,
        max_cycles=options.max_cycles,
        moving=task.moving,
        individual_death=options.death == "individual",
        leave_item=options.put_aside == "left",
        monsters_first=bool(task.letters),
        resample_text=options.resample_text,
        shuffle_manual=options.shuffle_manual,
        reassigned=options.manual == "reassigned",
        letters=bool(task.letters),
        sight_squared=-1.0 if options.sight is None else float(options.sight) ** 2,
        chase_squared=-1.0 if options.chase_range is None else float(options.chase_range) ** 2,
        side=splits.SPLITS[options.split],
        salt=salt,
    )
