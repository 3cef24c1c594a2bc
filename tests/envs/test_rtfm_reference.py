"""The kernels against a second, slow implementation of the rules, over many games of every task and stage."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.tasks import TASKS
from tests.envs.reference_rtfm import encode
from tests.envs.rtfm_games import STAGES, chance_of, meddlesome_actions, reference_game
from tests.full import in_full

GAMES, STEPS = in_full(12, 6), 25
LETTERS = {"permutation": 6, "released": 5, "new_edge": 6, "new_node": 7}
CASES = [
    *(("rtfm", {"task": task, "size": 5 + k % 2, "max_cycles": 12}) for k, task in enumerate(TASKS)),
    *(("rock_paper_scissors", {"task": task, "size": size, "max_cycles": 12}) for task, size in LETTERS.items()),
    *(
        ("ma_rtfm", {"stage": stage, "agents": n, "death": death, "size": 5 if n == 1 else 6, "max_cycles": 14})
        for stage in STAGES
        for n in (1, 2, 3, 4)
        for death in ("team", "individual")
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
        alive = [[agent.cell is not None for agent in game.agents] for game in games]
        observation, rewards, terminated, truncated, info = vec.step(actions)
        finals = info["final_rows"].tolist()
        assert finals == np.flatnonzero(info["done"]).tolist()
        for b, game in enumerate(games):
            outcome = game.step(actions[b].tolist(), *chance_of(twin.world, b))
            np.testing.assert_array_equal(rewards[b], np.float32(outcome.rewards))
            assert terminated[b].tolist() == outcome.terminated
            assert truncated[b].tolist() == outcome.truncated
            assert info["illegal"][b].tolist() == outcome.illegal
            assert bool(info["done"][b]) == outcome.done
            assert bool(info["won"][b]) == outcome.won
            assert info["length"][b] == game.steps
            returns[b] += rewards[b]
            np.testing.assert_array_equal(info["return"][b], returns[b])
            assert [a > 0 for a in alive[b]] == [r != 0 for r in outcome.rewards]
            compare_views(game, twin.world.observation, b, options, vocabulary)
            if outcome.done:
                compare_views(game, info["final_observation"], finals.index(b), options, vocabulary)
                for key in ("manual", "goal"):
                    last = twin.world.observation[key][b]
                    np.testing.assert_array_equal(info["final_observation"][key][finals.index(b)], last)
                games[b] = reference_game(vec.world, b)
                returns[b] = 0
                compare_views(games[b], observation, b, options, vocabulary)
                assert info["alive"][b].all()
            else:
                for key, views in observation.items():
                    np.testing.assert_array_equal(views[b], twin.world.observation[key][b])
                assert info["alive"][b].tolist() == [agent.cell is not None for agent in game.agents]


def test_the_comparison_sees_every_kind_of_end():
    """The games above are worth comparing only if they end in all ways."""
    ends = dict.fromkeys(["won", "late", "engaged", "died", "played on"], 0)
    for stage, death in (("s1", "individual"), ("s3", "team"), ("s3", "individual")):
        vec = mg.make_vec("ma_rtfm", 64, stage=stage, agents=2, death=death, size=6, max_cycles=10)
        rng = np.random.default_rng(0)
        vec.reset(seed=7)
        for _ in range(40):
            _, rewards, terminated, truncated, info = vec.step(meddlesome_actions(vec.world, rng))
            rows, living = info["final_rows"], info["final_observation"]["position"][:, :, 0] >= 0
            ends["won"] += info["won"].sum()
            ends["late"] += truncated.any(1).sum()
            ends["engaged"] += ((rewards[rows] == -1) & living & ~truncated[rows]).any(1).sum()
            ends["died"] += ((rewards[rows] == -1) & ~living).any(1).sum()
            ends["played on"] += (terminated.any(1) & ~info["done"]).sum()
    assert min(ends.values()) >= 50, ends
