"""MessengerWorld: B games of MESSENGER, for one agent or several."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from magrounding.envs.compiled import CompiledWorld
from magrounding.envs.messenger import kernels, manual
from magrounding.envs.messenger.arrays import (
    ACTION_NAMES,
    CELL,
    HOLDS,
    KIND,
    LOST,
    NUM_COLUMNS,
    NUM_SCALARS,
    OUTCOME,
    PRESENT,
    SIZE,
    STEP,
    TEAMMATE_WIDTH,
    TIMED_OUT,
    WON,
    Games,
    Results,
    Rules,
    Tables,
    Views,
    X,
    Y,
)
from magrounding.envs.messenger.entities import (
    ALLY_ID,
    ALLY_WITH_MESSAGE_ID,
    ENTITIES,
    ME_ID,
    ME_WITH_MESSAGE_ID,
    ROLES,
)
from magrounding.envs.messenger.splits import SPLITS, triples
from magrounding.envs.render import Figure, Scene
from magrounding.envs.world import StepBuffers
from magrounding.errors import ConfigurationError, choose
from magrounding.observation import ObservationField, ObservationSpec
from magrounding.seeding import NUM_STREAMS
from magrounding.vocabulary import PAD, Vocabulary

if TYPE_CHECKING:
    from magrounding.envs.messenger.stages import Stage

_MOST_OCCUPANTS = 6


@dataclass(frozen=True)
class WorldOptions:
    """Options of a world.

    Attributes:
        agents: n.
        split: see `splits.SPLITS`.
        max_cycles: steps after which a game is lost by time-out.
        manual: "true", or "reassigned" for one in which every description names another role: for tests of reading.
        corpus: folder with text_train.json, text_val.json and text_test.json to take the sentences from (see
            `manual.read_corpus`); None for our own.
        game_id: the manual is one line, the symbols of enemy, message and goal, instead of sentences: for those who are
            told who is who and need not read (the ablation Game-ID of EMMA).
    """

    agents: int = 1
    split: str = "train"
    max_cycles: int = 64
    manual: str = "true"
    corpus: str | None = None
    game_id: bool = False


class MessengerWorld(CompiledWorld):
    """MESSENGER.

    Args:
        num_envs: B.
        task: the stage.
        options: see `WorldOptions`.
        num_threads: threads that share the rows; episodes do not depend on it.

    Raises:
        ConfigurationError: an option out of its range, or more agents than the board has room for.
        DataNotFound: a corpus that is missing, damaged or incomplete.
    """

    action_names = ACTION_NAMES
    time_limit_is_loss = True

    def __init__(self, num_envs: int, task: Stage, options: WorldOptions, num_threads: int = 1) -> None:
        tables, vocabulary = _make_tables(task, options, num_threads)
        rules = _make_rules(task, options)
        slots = options.agents + 1 + 2 * options.agents + 2 * rules.decoys
        super().__init__(
            num_envs,
            task,
            options,
            num_threads,
            spec=_make_spec(rules, tables, vocabulary),
            vocabulary=vocabulary,
            kernels=kernels,
            rules=rules,
            tables=tables,
            games=Games(
                np.zeros((num_envs, NUM_STREAMS), np.uint64),
                np.zeros((num_envs, NUM_SCALARS), np.int64),
                np.zeros((num_envs, slots, NUM_COLUMNS), np.int16),
            ),
            agent_facts=4,
        )

    def _view(self, observation: dict[str, np.ndarray]) -> Views:
        grid = observation["grid"]
        teammates = observation.get("teammates", np.zeros((len(grid), 1, 0, TEAMMATE_WIDTH), np.int16))
        rest = {key: observation[key] for key in Views._fields if key not in ("grid", "teammates")}
        return Views(grid.reshape(*grid.shape[:2], -1), teammates=teammates, **rest)

    def _collect(self, out: StepBuffers) -> Results:
        return Results(*(getattr(out, name) for name in Results._fields))

    def entity_places(self) -> np.ndarray:
        """The enemy, messages, goals and decoys, in steps of half a cell."""
        entities = self._games.entities[:, self.num_agents :]
        places = entities[..., [Y, X]].astype(np.float32) / CELL
        return np.where(entities[..., PRESENT, None] == 1, places, np.float32(-1))

    def scene(self, row: int) -> Scene:
        entities, scalars, n = self._games.entities[row], self._games.scalars[row], self.num_agents
        roles = ["agent"] * n + ["enemy"] + ["message"] * n + ["goal"] * n + ["decoy"] * (2 * self._rules.decoys)
        figures = []
        for slot, entity in enumerate(entities):
            if entity[PRESENT]:
                at = int(entity[Y]) // CELL, int(entity[X]) // CELL
                name = str(slot) if slot < n else ENTITIES[entity[KIND]]
                figures.append(Figure(*at, roles[slot], name))
        return Scene(
            walls=np.zeros((SIZE, SIZE), np.bool_),
            figures=tuple(figures),
            alive=(True,) * n,
            inventories=tuple("message" if agent[HOLDS] else "" for agent in entities[:n]),
            goal="",
            manual=tuple(self.text(row)["manual"]),
            step=int(scalars[STEP]),
            max_cycles=self.max_cycles,
            outcome={WON: "won", LOST: "lost", TIMED_OUT: "lost"}.get(int(scalars[OUTCOME]), ""),
        )


def _make_tables(stage: Stage, options: WorldOptions, num_threads: int) -> tuple[Tables, Vocabulary]:
    """What the kernels look up; the options are checked first."""
    split = SPLITS[choose("split", options.split, SPLITS)]
    choose("manual", options.manual, ("true", "reassigned"))
    for name, value in (("agents", options.agents), ("max_cycles", options.max_cycles), ("num_threads", num_threads)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"{name} must be an integer of at least 1, got {value!r}")
    around = [(y, x) for y, x in product(range(SIZE), repeat=2) if 2 <= abs(y - 5) + abs(x - 5) <= 3]
    most = (len(around) - 1) // 2
    if options.agents > most:
        raise ConfigurationError(
            f"{options.agents} agents need {1 + 2 * options.agents} cells around the middle, the board has "
            f"{len(around)}: at most {most} agents"
        )
    if not isinstance(options.game_id, bool):
        raise ConfigurationError(f"game_id is true or false, not {options.game_id!r}")
    if options.corpus is not None and not isinstance(options.corpus, str):
        raise ConfigurationError(f"corpus must be the path of a folder, got {options.corpus!r}")
    mixed = split.combinations == "mixed"
    sentences, first, choices = manual.sentence_tables(options.corpus, split.text)
    tables = Tables(
        triples=triples("many" if mixed else split.combinations),
        other_triples=triples("single"),
        movements=stage.movements(split.new_dynamics),
        starts=stage.starts(options.agents),
        cells=np.array(around, np.int64),
        sentences=sentences,
        first=first,
        choices=choices,
    )
    return tables, manual.vocabulary_of(options.corpus)


def _make_rules(stage: Stage, options: WorldOptions) -> Rules:
    n = options.agents
    # One seed must name different documents in different configurations: a cache of encodings may see several.
    salt = int.from_bytes(hashlib.sha256(repr((stage, astuple(options))).encode()).digest()[:7], "big")
    slots = 3 * n + 1 + 2 * stage.decoys
    return Rules(
        agents=n,
        decoys=int(stage.decoys),
        occupants=min(slots, _MOST_OCCUPANTS),
        max_cycles=options.max_cycles,
        delivers=stage.delivers,
        wanders=stage.moves == "wander",
        begins_with_message=stage.begins_with_message,
        says_nothing=stage.says_nothing,
        pick_up=stage.pick_up,
        adds_up=not stage.team,
        mixed=SPLITS[options.split].combinations == "mixed",
        reassigned=options.manual == "reassigned",
        game_id=options.game_id,
        salt=salt,
    )


def _make_spec(rules: Rules, tables: Tables, vocabulary: Vocabulary) -> ObservationSpec:
    n, top = rules.agents, len(vocabulary) - 1
    text = (1, len(ROLES)) if rules.game_id else (6 if rules.decoys else 3, tables.sentences.shape[1])
    fields = [
        ObservationField("grid", (SIZE, SIZE, rules.occupants), 0, ALLY_WITH_MESSAGE_ID),
        ObservationField("position", (2,), -1, SIZE - 1),
        ObservationField("manual", text, 0, top, shared=True),
        ObservationField("inventory", (1,), 0, ME_WITH_MESSAGE_ID),
        ObservationField("action_mask", (len(ACTION_NAMES),), 0, 1, "int8"),
    ]
    if n > 1:
        fields.append(ObservationField("teammates", (n - 1, TEAMMATE_WIDTH), -1, ME_WITH_MESSAGE_ID))
    return ObservationSpec(
        fields=tuple(fields),
        num_agents=n,
        num_actions=len(ACTION_NAMES),
        height=SIZE,
        width=SIZE,
        vocabulary_size=len(vocabulary),
        scenery_ids=(PAD,),
        avatar_ids=(ME_ID, ME_WITH_MESSAGE_ID, ALLY_ID, ALLY_WITH_MESSAGE_ID),
        words_per_occupant=1,
        words=vocabulary.words,
    )
