"""Evaluation sets that are aliases of others for players without names: both are played, and compared step by step."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.registry import ENVS
from magrounding.teams.evaluate import evaluate
from magrounding.teams.team import Team

DECLARED = [(entry.id, stage) for entry in ENVS.values() if entry.evaluation.aliases for stage in entry.stages]
GAMES, STEPS = 48, 25
SIZE = {"ma_rtfm": {"size": 8, "agents": 2}}


def options_of(env, stage, name):
    entry = ENVS[env]
    return {"max_cycles": 40, **SIZE.get(env, {}), **entry.with_stage(stage), **entry.evaluation.sets[name]}


def nameless(obs, spec):
    """The observation with, in place of each word, the statements (one bit each) and the goal that it stands in."""
    manual, goal = obs["manual"].astype(np.int64), obs["goal"].astype(np.int64)
    rows = np.arange(len(manual))[:, None]
    places = np.zeros((len(manual), spec.vocabulary_size), np.int64)
    for bit, statement in enumerate([*manual.transpose(1, 0, 2), goal]):
        found = np.zeros(places.shape, np.bool_)
        found[rows, statement] = True
        places += found << bit
    fixed = [0, *spec.grid.scenery_ids, *spec.grid.avatar_ids]
    places[:, fixed] = -1 - np.array(fixed)

    def seen(array):
        return places[rows, array.reshape(len(array), -1)].reshape(array.shape)

    told = {name: seen(obs[name]) for name in ("grid", "manual", "goal", "inventory")}
    if "teammates" in obs:
        told["teammates"] = np.concatenate((obs["teammates"][..., :2], seen(obs["teammates"][..., 2:])), -1)
    return {**told, "position": obs["position"], "action_mask": obs["action_mask"]}


@pytest.mark.parametrize(("env", "stage"), DECLARED)
def test_aliases_differ_in_names_alone(env, stage):
    """The same actions lead to the same games in both sets, and without names to the same observations."""
    entry, shown = ENVS[env], {}
    aliases = entry.evaluation.aliases
    for name in {*aliases, *aliases.values()}:
        vec = mg.make_vec(env, GAMES, **options_of(env, stage, name))
        rng, story = np.random.default_rng(0), []
        obs, info = vec.reset(seed=7)
        for _ in range(STEPS):
            told = nameless(obs, vec.spec)
            actions = rng.integers(vec.spec.num_actions, size=(GAMES, vec.num_agents))
            read = {
                part: told.pop(part).copy()
                for part in ("grid", "manual", "goal", "inventory", "teammates")
                if part in told
            }
            own = {part: array.copy() for part, array in told.items()}
            obs, rewards, terminated, truncated, info = vec.step(actions)
            ends = [x.copy() for x in (rewards, terminated, truncated, info.won, info.length)]
            story.append((own, read, ends))
        shown[name] = story
        vec.close()
    for name, alias in aliases.items():
        for (own, read, ends), (its_own, its_read, its_ends) in zip(shown[alias], shown[name], strict=True):
            assert all(np.array_equal(own[part], its_own[part]) for part in own)
            assert all(map(np.array_equal, ends, its_ends))
            assert all(np.array_equal(read[part], its_read[part]) for part in read)


@pytest.mark.parametrize("agent", ["relread", "endi_dis_relread"])
@pytest.mark.parametrize("greedy", [True, False])
def test_readers_without_names_play_the_same_games_in_the_same_way(agent, greedy):
    """Bit for bit; the weights are large, so that what they read matters."""
    options = options_of("ma_rtfm", "s5", "train")
    spec = ENVS["ma_rtfm"].describe(**options)
    policies = [build_policy(agent, spec, {}, seed) for seed in (1, 2)]
    with torch.no_grad():
        for policy in policies:
            for parameter in policy.parameters():
                parameter.mul_(2.0)
    team = Team(policies, spec)
    assert not team.depends_on_names
    found = [
        evaluate(team, "ma_rtfm", options_of("ma_rtfm", "s5", name), 60, greedy=greedy, diagnose=True)
        for name in ("train", "eval", "eval_new")
    ]
    for other in found[1:]:
        assert other.summary() == found[0].summary()
        assert np.array_equal(other.returns, found[0].returns)
