"""Players with the manuals of other games: what they read, and that caches of texts notice."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.teams.evaluate import ShuffledManuals
from magrounding.teams.scripted import RandomTeam
from magrounding.teams.team import Team

OPTIONS = {"stage": "s5", "agents": 2, "max_cycles": 12}
SMALL = {"pair_hidden": 4, "message": 4, "entity_hidden": 4, "features": 4, "hidden": 8, "top": 6}


@pytest.fixture(scope="module")
def team():
    spec = mg.make_vec("ma_rtfm", 1, **OPTIONS).spec
    return Team([build_policy("relread", spec, SMALL, seed) for seed in (0, 1)], spec)


class Recorder(RandomTeam):
    """Draws, and keeps what it was given."""

    def __init__(self):
        super().__init__(2, 5)
        self.given = []

    def act(self, obs, memory=None, info=None, greedy=False):
        self.given.append(({key: array.copy() for key, array in obs.items()}, info))
        return super().act(obs, memory, info, greedy)


@pytest.mark.parametrize("resample_text", [False, True])
def test_keys_name_manual_and_goal_together(resample_text):
    """From step to step a key of a row changes if and only if one of the two games shows another document."""
    vec = mg.make_vec("ma_rtfm", 5, resample_text=resample_text, copy=True, **OPTIONS)
    (obs, info), recorder = vec.reset(seed=3), Recorder()
    shuffled = ShuffledManuals(recorder)
    shown, changes = [], []
    for _ in range(200):
        shown.append(info["document"])
        obs, _, _, _, info = vec.step(shuffled.act(obs, None, info)[0])
    texts = {}
    for given, told in recorder.given:
        assert told["document"].dtype == np.int64
        assert (told["document"] >= 0).all()
        for b, key in enumerate(told["document"].tolist()):
            text = given["manual"][b].tobytes() + given["goal"][b].tobytes()
            assert texts.setdefault(key, text) == text
    keys = [told["document"] for _, told in recorder.given]
    for t in range(1, 200):
        own = shown[t] != shown[t - 1]
        other = np.roll(own, -1)
        assert ((keys[t] != keys[t - 1]) == (own | other)).all()
        changes += list(zip(own.tolist(), other.tolist(), strict=True))
    assert set(changes) == ({(True, True)} if resample_text else {(o, p) for o in (True, False) for p in (True, False)})


def test_a_team_acts_as_when_it_is_handed_the_exchanged_manuals(team):
    vec = mg.make_vec("ma_rtfm", 6, **OPTIONS)
    (obs, info), shuffled = vec.reset(seed=0), ShuffledManuals(team)
    memory, differ, restarts = shuffled.initial_memory(6), 0, 0
    for _ in range(60):
        actions, memory = shuffled.act(obs, memory, info)
        exchanged = {**obs, "manual": obs["manual"][[1, 2, 3, 4, 5, 0]]}
        assert (actions == team.act(exchanged, team.initial_memory(6))[0]).all()  # without a cache
        differ += (actions != team.act(obs, team.initial_memory(6))[0]).sum()
        obs, _, _, _, info = vec.step(actions)
        restarts += info["done"].sum()
    assert differ > 0  # or it does not read at all
    assert restarts > 12
