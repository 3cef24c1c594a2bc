"""The kernels against a second, slow implementation of the rules: whole games of every task and stage, and crowds."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.arrays import COLUMN, HELD, PRESENT, ROW, TARGET, TARGETS_LEFT
from magrounding.envs.rtfm.ontology import TASKS
from tests.envs.reference_rtfm import encode
from tests.envs.rtfm_games import STAGES, chance_of, counts, meddlesome_actions, reference_game
from tests.full import in_full

GAMES, STEPS = in_full(12, 6), 25
LETTERS = {"permutation": 6, "released": 5, "new_edge": 6, "new_node": 7}
CASES = [
    *(("rtfm", {"task": task, "size": 5 + k % 2, "max_cycles": 12}) for k, task in enumerate(TASKS)),
    *(("rock_paper_scissors", {"task": task, "size": size, "max_cycles": 12}) for task, size in LETTERS.items()),
    *(
        ("ma_rtfm", {"stage": stage, "agents": n, "death": death, "size": 5 if n == 1 else 6, "max_cycles": 14})
        for stage in STAGES
        for n in (1, 3)
        for death in ("team", "individual")[: 1 + (n > 1)]
    ),
    ("ma_rtfm", {"stage": "s3", "agents": 2, "size": 5, "drop_mode": "left"}),
    ("ma_rtfm", {"stage": "s2", "agents": 3, "size": 6, "drop_mode": "left", "death": "individual"}),
    ("ma_rtfm", {"stage": "s3", "agents": 3, "size": 6, "occupants": 1}),
    ("ma_rtfm", {"stage": "s3", "agents": 3, "size": 7, "sight": 2}),
    ("ma_rtfm", {"stage": "s3", "agents": 2, "size": 8, "sight": 2.5, "occupants": 1, "death": "individual"}),
    ("ma_rtfm", {"stage": "s5", "agents": 2, "size": 6, "chase_range": None, "split": "eval_new"}),
    ("ma_rtfm", {"stage": "s5", "agents": 2, "size": 6, "chase_range": 1, "split": "eval_paraphrase"}),
    ("ma_rtfm", {"stage": "s5", "agents": 2, "size": 6, "resample_text": True, "shuffle_manual": False}),
    ("ma_rtfm", {"stage": "s4", "agents": 2, "size": 6, "split": "eval", "max_cycles": 1}),
    ("rtfm", {"task": "simple", "size": 5, "drop_mode": "left", "sight": 1, "occupants": 1}),
    ("rock_paper_scissors", {"task": "released", "split": "eval", "size": 6, "drop_mode": "left", "sight": 3}),
]


def name(case):
    return "-".join([case[0], *(str(v) for v in case[1].values())])


def compare_views(game, views, row, options, vocabulary):
    """All observations of one game with what the reference shows."""
    n = len(game.agents)
    for a in range(n):
        grid = encode(vocabulary, game.grid(a, options.occupants, options.sight))
        np.testing.assert_array_equal(views["grid"][row, a], grid)
        assert views["position"][row, a].tolist() == game.position(a)
        assert views["inventory"][row, a].tolist() == encode(vocabulary, game.inventory(a))
        assert views["action_mask"][row, a].tolist() == game.mask(game.agents[a])
        if n > 1:
            mates = [[*game.position(k), *encode(vocabulary, game.inventory(k))] for k in range(n) if k != a]
            assert views["teammates"][row, a].tolist() == mates


def compare_state(game, vec, row):
    world, vocabulary = vec.world, vec.spec.vocabulary
    state = vec.state()[row]
    parts = {key: state[place].reshape(shape) for key, (place, shape) in world.spec.state_layout().items()}
    np.testing.assert_array_equal(parts["grid"], encode(vocabulary, game.grid(None, world.game.occupants)))
    agents = [
        [*game.position(k), int(agent.cell is not None), *encode(vocabulary, game.inventory(k))]
        for k, agent in enumerate(game.agents)
    ]
    assert parts["agents"].tolist() == agents


def compare_outcome(outcome, out, row):
    """Rewards, flags and ends of one game with those of the reference."""
    np.testing.assert_array_equal(out.rewards[row], np.float32(outcome.rewards))
    assert out.terminated[row].tolist() == outcome.terminated
    assert out.truncated[row].tolist() == outcome.truncated
    assert out.illegal[row].tolist() == outcome.illegal
    assert (out.done[row], out.won[row]) == (outcome.done, outcome.won)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_kernels_and_reference_play_the_same_games(case):
    """Rewards, flags, outcomes, lengths, returns and every observation, through automatic restarts."""
    vec = mg.make_vec(case[0], GAMES, **case[1])
    twin = mg.make_vec(case[0], GAMES, **case[1])  # plays each step without restarting, to look at its chance
    rng = np.random.default_rng(GAMES)
    options, vocabulary = vec.world.game, vec.spec.vocabulary
    observation, _ = vec.reset(seed=7)
    games = [reference_game(vec.world, b) for b in range(GAMES)]
    returns = np.zeros((GAMES, vec.num_agents), np.float32)
    for b, game in enumerate(games):
        compare_views(game, observation, b, options, vocabulary)
    for _ in range(STEPS):
        compare_state(games[0], vec, 0)
        actions = meddlesome_actions(vec.world, rng)
        twin.restore(vec.snapshot())
        twin.world.step(actions, False)
        out, last = twin.world.out, twin.world.observation
        observation, rewards, terminated, truncated, info = vec.step(actions)
        np.testing.assert_array_equal(rewards, out.rewards)
        np.testing.assert_array_equal(terminated, out.terminated)
        np.testing.assert_array_equal(truncated, out.truncated)
        for key in ("illegal", "done", "won"):
            np.testing.assert_array_equal(info[key], getattr(out, key))
        finals = info["final_rows"].tolist()
        assert finals == np.flatnonzero(info["done"]).tolist()
        returns += rewards
        np.testing.assert_array_equal(info["return"], returns)
        for b, game in enumerate(games):
            outcome = game.step(actions[b].tolist(), *chance_of(twin.world, b))
            compare_outcome(outcome, out, b)
            assert info["length"][b] == game.steps
            compare_views(game, last, b, options, vocabulary)
            if outcome.done:
                for key, views in info["final_observation"].items():
                    np.testing.assert_array_equal(views[finals.index(b)], last[key][b])
                games[b] = reference_game(vec.world, b)
                returns[b] = 0
                compare_views(games[b], observation, b, options, vocabulary)
                assert info["alive"][b].all()
            else:
                for key, views in observation.items():
                    np.testing.assert_array_equal(views[b], last[key][b])
                assert info["alive"][b].tolist() == [agent.cell is not None for agent in game.agents]


CROWDS = [
    ("rtfm", {"task": "group", "size": 5}),
    ("rock_paper_scissors", {"task": "permutation", "size": 5}),
    ("ma_rtfm", {"stage": "s1", "agents": 5, "size": 6, "death": "individual"}),
    ("ma_rtfm", {"stage": "s2", "agents": 3, "size": 6, "drop_mode": "left"}),
    ("ma_rtfm", {"stage": "s3", "agents": 3, "size": 6, "drop_mode": "left", "death": "individual"}),
    ("ma_rtfm", {"stage": "s3", "agents": 2, "size": 6}),
]
ROWS = in_full(2000, 400)


def crowd(world, rng):
    """Put all, in every row, at random into a corner of 3 × 3: most of them armed, some dead, one target left at least.

    So rare things meet in one cell and one step: a kill and a death, target and distractor, an item left and taken.
    """
    entities, (n, m, i) = world._games.entities, counts(world)
    even, odd = (
        rng.choice([0, 2, 4, 6, 8], (ROWS, n)),
        rng.choice([1, 3, 5, 7], (ROWS, m)),
    )  # no agent is with a monster
    cells = np.hstack([even, odd, rng.permuted(np.tile(np.arange(9), (ROWS, 1)), axis=1)[:, :i]])
    entities[:, :, ROW], entities[:, :, COLUMN] = 1 + cells // 3, 1 + cells % 3
    present = rng.random(entities.shape[:2]) < 0.7
    present[:, [0, n]] = True
    if world.game.death == "team":
        present[:, :n] = True
    held = rng.permuted(np.tile(np.arange(n + m, n + m + i), (ROWS, 1)), axis=1)[:, :n]
    held[(rng.random(held.shape) < 0.3) | ~present[:, :n]] = -1
    for row, items in enumerate(held):
        present[row, items[items >= 0]] = False
    monsters = present[:, n : n + m] & (entities[:, n : n + m, TARGET] == 1)
    present[:, n : n + m] |= ~monsters.any(1, keepdims=True)
    entities[:, :, PRESENT], entities[:, :n, HELD] = present, held
    world._games.scalars[:, TARGETS_LEFT] = (present & (entities[:, :, TARGET] == 1))[:, n : n + m].sum(1)


@pytest.mark.parametrize("case", CROWDS, ids=name)
def test_kernels_and_reference_agree_in_crowds(case):
    vec = mg.make_vec(case[0], ROWS, max_cycles=3, **case[1])
    vec.reset(seed=7)
    world, rng = vec.world, np.random.default_rng(8)
    crowd(world, rng)
    games = {b: reference_game(world, b) for b in range(ROWS)}
    for _ in range(3):
        actions = rng.integers(0, 5, (ROWS, vec.num_agents))
        world.step(actions, False)
        for b, game in list(games.items()):
            outcome = game.step(actions[b].tolist(), *chance_of(world, b))
            compare_outcome(outcome, world.out, b)
            compare_views(game, world.observation, b, world.game, vec.spec.vocabulary)
            if outcome.done:
                del games[b]
