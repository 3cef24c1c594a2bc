"""Reading games out of a world's arrays, for the tests: what lies where, and what the document says about it."""

from __future__ import annotations

import numpy as np

from magrounding.envs.rtfm import ontology
from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, MOVE, PRESENT, ROW, TURN, WORD_1, WORD_2
from magrounding.envs.rtfm.world import RTFMWorld
from tests.envs.reference_rtfm import Being, Document, ReferenceGame, read_document, read_letters

STAGES = [name for name, task in ontology.STAGES.items() if task.layout == "statements"]
"""The stages whose manuals the reference can read; S6 is played as S5 (`test_rtfm_constructions`)."""


def counts(world: RTFMWorld) -> tuple[int, int, int]:
    """Numbers of agents, monsters and items."""
    return world._rules.agents, world._rules.monsters, world._rules.items


def document_of(world: RTFMWorld, row: int) -> Document:
    text = world.text(row)
    if world.game.kind.letters:
        return read_letters(text["manual"])
    held_out = "_held_out" * (world.game.split == "eval_paraphrase")
    return read_document(text["manual"], text["goal"], ("plain", "language")[world.game.kind.language] + held_out)


def being(world: RTFMWorld, row: int, slot: int) -> Being:
    entity, words = world._games.entities[row, slot], world.spec.vocabulary.words
    names = tuple(words[entity[c]] if entity[c] else "" for c in (WORD_1, WORD_2))
    return Being(names, (int(entity[ROW]), int(entity[COLUMN])) if entity[PRESENT] else None)


def reference_game(world: RTFMWorld, row: int) -> ReferenceGame:
    """A reference that begins where row `row` of a world has just begun, or has been put."""
    n, m, i = counts(world)
    beings = [being(world, row, slot) for slot in range(n + m + i)]
    options = world.game
    game = ReferenceGame(
        [b.cell for b in beings[:n]],
        beings[n : n + m],
        beings[n + m :],
        document_of(world, row),
        size=options.size,
        max_cycles=options.max_cycles,
        death=options.death,
        drop_mode=options.drop_mode,
        moving=world.game.kind.moving,
        monsters_first=bool(world.game.kind.letters),
        letters=bool(world.game.kind.letters),
    )
    for agent, held in zip(game.agents, world._games.entities[row, :n, HELD].tolist(), strict=True):
        agent.held = beings[held] if held >= 0 else None
    return game


def chance_of(world: RTFMWorld, row: int) -> tuple[list[int], dict[int, int]]:
    """Turn order and moves of monsters that the last step drew."""
    n, m, _ = counts(world)
    entities = world._games.entities[row]
    movers = n + m if world.game.kind.moving else n
    moves = {k: int(entities[k, MOVE]) for k in range(n, n + m)} if world.game.kind.moving else {}
    return entities[:movers, TURN].tolist(), moves


def meddlesome_actions(world: RTFMWorld, rng: np.random.Generator) -> np.ndarray:
    """Actions [B, n] of players with a plan most of the time: some item, then a monster it beats, or any thing at all.

    Random players hardly ever win; these bring about every kind of end.
    """
    entities, n, (_, monsters, _) = world._games.entities, world.num_agents, counts(world)
    actions = rng.integers(0, 5, (world.num_envs, n))
    plans = rng.random(actions.shape)
    for b, a in zip(*np.nonzero((plans < 0.8) & (entities[:, :n, PRESENT] == 1)), strict=True):
        things = entities[b]
        held = things[a, HELD]
        wanted = things[:, PRESENT] == 1
        wanted[: n if plans[b, a] < 0.1 else (n + monsters if held < 0 else n)] = False
        if held >= 0 and plans[b, a] >= 0.1:
            wanted &= (things[:, ELEMENT] == things[held, ELEMENT]) | (plans[b, a] < 0.2)
            wanted[n + monsters :] = False
            if not wanted.any():
                wanted[n + monsters :] = things[n + monsters :, PRESENT] == 1
        choices = np.flatnonzero(wanted)
        if len(choices):
            goal = things[rng.choice(choices)]
            rows, columns = int(goal[ROW] - things[a, ROW]), int(goal[COLUMN] - things[a, COLUMN])
            toward = [1 if rows < 0 else 2] * abs(rows) + [3 if columns < 0 else 4] * abs(columns)
            actions[b, a] = rng.choice(toward) if toward else 0
    return actions
