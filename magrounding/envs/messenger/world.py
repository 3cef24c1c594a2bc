"""MessengerWorld: B games of MESSENGER, for one agent or several."""

from __future__ import annotations

import numpy as np

from magrounding.envs.compiled import OUTCOME_NAMES, CompiledWorld, added, salt_of
from magrounding.envs.messenger import arrays, kernels
from magrounding.envs.messenger.arrays import ENTITIES
from magrounding.envs.messenger.games import MessengerGame
from magrounding.envs.messenger.manual import STATEMENTS, STREAM, find_corpus, sentence_tables
from magrounding.envs.messenger.sentences import SPLITS, sentences_of, triples
from magrounding.envs.render import Figure, Scene, sorted_figures

_STAGE = "max_cycles cells centre moves delivers decoys begins_with_message says_nothing pick_up team"


class MessengerWorld(CompiledWorld[MessengerGame]):
    """MESSENGER; arguments as of `CompiledWorld`."""

    def __init__(self, num_envs: int, game: MessengerGame, num_threads: int = 1) -> None:
        rules, tables = _make_rules(game), _make_tables(game)
        super().__init__(num_envs, game, num_threads, kernels, arrays, rules, tables, game.slots)

    def entity_places(self) -> np.ndarray:
        """The enemy, messages, goals and decoys, in steps of half a cell."""
        entities = self._games.entities[:, self.num_agents :]
        places = entities[..., [arrays.Y, arrays.X]].astype(np.float32) / arrays.CELL
        return np.where(entities[..., arrays.PRESENT, None] == 1, places, np.float32(-1))

    def events(self) -> dict[str, np.ndarray]:
        return {"held": self._games.entities[:, : self.num_agents, arrays.HOLDS] - 1}

    def scene(self, row: int) -> Scene:
        entities, scalars, n = self._games.entities[row], self._games.scalars[row], self.num_agents
        figures = []
        for slot, entity in enumerate(entities):
            if entity[arrays.PRESENT]:
                at = int(entity[arrays.Y]) // arrays.CELL, int(entity[arrays.X]) // arrays.CELL
                what = ("agent", str(slot)) if slot < n else ("entity", ENTITIES[entity[arrays.KIND]])
                figures.append(Figure(*at, *what))
        return Scene(
            walls=np.zeros((arrays.SIZE, arrays.SIZE), np.bool_),
            figures=sorted_figures(figures),
            alive=(True,) * n,
            inventories=tuple("message" if agent[arrays.HOLDS] else "" for agent in entities[:n]),
            goal="",
            manual=tuple(self.text(row)["manual"]),
            step=int(scalars[arrays.STEP]),
            max_cycles=self.spec.max_cycles,
            outcome=OUTCOME_NAMES[scalars[arrays.OUTCOME]],
        )


def _make_tables(game: MessengerGame) -> arrays.Tables:
    """Make the tables that the kernels look up."""
    split = SPLITS[game.split]
    sentences, first, choices = sentence_tables(
        find_corpus(game.corpus), sentences_of(game), stream=game.layout == STREAM
    )
    return arrays.Tables(
        triples=triples("many" if split.combinations == "mixed" else split.combinations),
        other_triples=triples("single"),
        movements=game.kind.movements(split.new_dynamics),
        starts=game.kind.starts(game.agents),
        cells=np.array(arrays.STARTING_CELLS, np.int64),
        sentences=sentences,
        first=first,
        choices=choices,
    )


def _make_rules(game: MessengerGame) -> arrays.Rules:
    stage = game.kind
    corpus = find_corpus(game.corpus).digest  # a folder may hold other files tomorrow
    layout = () if game.layout == STATEMENTS else (game.layout,)  # documents are named as when there was no other
    options = game.agents, game.split, game.limit, game.manual, corpus, game.game_id, *layout
    later = added(game, "agents split max_cycles manual corpus game_id layout omission fixed_roles stage")
    return arrays.Rules(
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
        salt=salt_of(stage, _STAGE, *options, *later),
        omission=float(game.omission),
        fixed_roles=float(game.fixed_roles),
    )
