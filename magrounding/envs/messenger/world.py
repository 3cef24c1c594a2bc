"""MessengerWorld: B games of MESSENGER, for one agent or several."""

from __future__ import annotations

import hashlib

import numpy as np

from magrounding.envs.compiled import CompiledWorld
from magrounding.envs.messenger import kernels
from magrounding.envs.messenger.arrays import (
    CELL,
    HOLDS,
    KIND,
    LOST,
    NUM_COLUMNS,
    NUM_SCALARS,
    OUTCOME,
    PRESENT,
    SIZE,
    STARTING_CELLS,
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
from magrounding.envs.messenger.entities import ENTITIES
from magrounding.envs.messenger.games import MessengerGame
from magrounding.envs.messenger.layouts import STATEMENTS, STREAM
from magrounding.envs.messenger.manual import find_corpus, sentence_tables
from magrounding.envs.messenger.sentences import sentences_of
from magrounding.envs.messenger.splits import SPLITS, triples
from magrounding.envs.render import Figure, Scene, in_no_order
from magrounding.envs.world import StepBuffers
from magrounding.seeding import NUM_STREAMS


class MessengerWorld(CompiledWorld[MessengerGame]):
    """MESSENGER.

    Args:
        num_envs: B.
        game: what is played.
        num_threads: threads that share the rows; episodes do not depend on it.
    """

    def __init__(self, num_envs: int, game: MessengerGame, num_threads: int = 1) -> None:
        super().__init__(
            num_envs,
            game,
            num_threads,
            kernels=kernels,
            rules=_make_rules(game),
            tables=_make_tables(game),
            games=Games(
                np.zeros((num_envs, NUM_STREAMS), np.uint64),
                np.zeros((num_envs, NUM_SCALARS), np.int64),
                np.zeros((num_envs, game.slots, NUM_COLUMNS), np.int16),
            ),
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

    def events(self) -> dict[str, np.ndarray]:
        return {"held": self._games.entities[:, : self.num_agents, HOLDS] - 1}

    def scene(self, row: int) -> Scene:
        entities, scalars, n = self._games.entities[row], self._games.scalars[row], self.num_agents
        figures = []
        for slot, entity in enumerate(entities):
            if entity[PRESENT]:
                at = int(entity[Y]) // CELL, int(entity[X]) // CELL
                what = ("agent", str(slot)) if slot < n else ("entity", ENTITIES[entity[KIND]])
                figures.append(Figure(*at, *what))
        return Scene(
            walls=np.zeros((SIZE, SIZE), np.bool_),
            figures=in_no_order(figures),
            alive=(True,) * n,
            inventories=tuple("message" if agent[HOLDS] else "" for agent in entities[:n]),
            goal="",
            manual=tuple(self.text(row)["manual"]),
            step=int(scalars[STEP]),
            max_cycles=self.spec.max_cycles,
            outcome={WON: "won", LOST: "lost", TIMED_OUT: "lost"}.get(int(scalars[OUTCOME]), ""),
        )


def _make_tables(game: MessengerGame) -> Tables:
    """What the kernels look up."""
    split = SPLITS[game.split]
    sentences, first, choices = sentence_tables(
        find_corpus(game.corpus), sentences_of(game), stream=game.layout == STREAM
    )
    return Tables(
        triples=triples("many" if split.combinations == "mixed" else split.combinations),
        other_triples=triples("single"),
        movements=game.kind.movements(split.new_dynamics),
        starts=game.kind.starts(game.agents),
        cells=np.array(STARTING_CELLS, np.int64),
        sentences=sentences,
        first=first,
        choices=choices,
    )


def _make_rules(game: MessengerGame) -> Rules:
    stage = game.kind
    # One seed must name different documents in different configurations: a cache of encodings may see several.
    corpus = find_corpus(game.corpus).digest  # a folder may hold other files tomorrow
    options = game.agents, game.split, game.limit, game.manual, corpus, game.game_id
    if game.layout != STATEMENTS:  # which names its documents as when there was no other
        options = *options, game.layout
    salt = int.from_bytes(hashlib.sha256(repr((stage, options)).encode()).digest()[:7], "big")
    return Rules(
        agents=game.agents,
        decoys=int(stage.decoys),
        occupants=game.occupants,
        statements=1 if game.game_id else game.statements,
        max_cycles=game.limit,
        delivers=stage.delivers,
        wanders=stage.moves == "wander",
        begins_with_message=stage.begins_with_message,
        says_nothing=stage.says_nothing,
        pools=stage.moves == "still",
        pick_up=stage.pick_up,
        adds_up=not stage.team,
        mixed=SPLITS[game.split].combinations == "mixed",
        reassigned=game.manual == "reassigned",
        game_id=game.game_id,
        salt=salt,
    )
