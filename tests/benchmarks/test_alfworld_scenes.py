"""Success on ALFWorld's scenes: each is played once by each player, whichever is done first."""

import pytest
import torch

from magrounding.agents.building import make_policy
from magrounding.play.team import Team
from magrounding.single.alfworld import ALFWorld
from magrounding.single.alfworld.games import shipped_scenes

pytest.importorskip("alfworld", reason="the extra `alfworld` is absent: alfworld")

from benchmarks import alfworld_scenes
from magrounding.single.alfworld.env import ALFWorldEnv

SCENES = 5


def test_every_scene_is_played_once_by_each_player(monkeypatch):
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
