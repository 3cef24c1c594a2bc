"""Success on ALFWorld's scenes: each is played once by each player, whichever is done first."""

import numpy as np
import pytest
import torch

from benchmarks import alfworld_scenes
from magrounding.agents.building import make_policy
from magrounding.single.alfworld import ALFWorld
from magrounding.single.alfworld.env import ALFWorldEnv
from magrounding.single.alfworld.games import shipped_scenes
from magrounding.teams.team import Team

SCENES = 5


def test_every_scene_is_played_once_by_each_player(monkeypatch):
    pytest.importorskip("alfworld", reason="the extra `alfworld` is absent: alfworld")
    torch.manual_seed(0)
    spec = ALFWorld().describe()
    networks = [make_policy("choiceread", spec, embedding=4, states=8, role=4, hidden=8) for _ in range(2)]
    teams = [Team([network], spec) for network in networks]
    begun = []
    begin = ALFWorldEnv._begin

    def note(env, seed, episode):
        begin(env, seed, episode)
        begun.append(env.game_name)

    monkeypatch.setattr(ALFWorldEnv, "_begin", note)
    monkeypatch.setattr(alfworld_scenes, "shipped_scenes", lambda split: shipped_scenes(split)[:SCENES])
    names = [scene.name for scene in shipped_scenes("test")[:SCENES]]
    for who, won in alfworld_scenes.results(teams, "test", rows=2):
        assert won.shape == (1 if who in ("random", "expert") else 2, SCENES)
        assert set(begun) == set(names), who
        assert len(begun) >= len(won) * SCENES
        assert won.all() or who != "expert"
        begun.clear()


def test_a_team_without_a_goal_is_shown_none():
    class Shown:
        """An actor that keeps what it is shown."""

        def act(self, obs, memory, info=None, greedy=True):
            self.obs, self.info = obs, info
            return np.zeros(2, np.int64), memory

    actor, obs = Shown(), {"goal": np.array([[3, 4], [5, 6]]), "feedback": np.array([[7], [8]])}
    alfworld_scenes.WithoutGoal(actor, "goal").act(obs, None, {"document": np.array([11, 12])})
    assert not actor.obs["goal"].any()
    assert actor.obs["feedback"].tolist() == [[7], [8]]
    assert actor.info["document"].tolist() == [0, 0]
