"""Games of one's own that show no mask and draw nothing: every command plays them, and shows them in words."""

import sys

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from pettingzoo import ParallelEnv

import magrounding as mg
from magrounding.cli import match, replay, train, watch
from magrounding.cli.command import CommandLine
from magrounding.registry import ENVS
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Grid, Text
from magrounding.vocabulary import Vocabulary

WORDS = Vocabulary(("go", "north", "south", "lamp"))


class Lamps(ParallelEnv):
    """Two agents go where the text says, for one step."""

    def __init__(self, agents=2):
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.agents, self.metadata = [], {"name": "lamps", "render_modes": []}
        fields = (
            Text("manual", (2, 3), 0, 4, shared=True, lifetime=EPISODE),
            Grid("grid", (2, 2, 1), 0, 4),
            Field("speed", (2,), -1, 1, "float32"),
        )
        self.spec = EnvSpec(fields, agents, FixedActions(("north", "south")), WORDS.words, 1)
        self.space, self.actions = self.spec.space(), Discrete(2)
        self.rng = np.random.default_rng()

    def describe(self):
        return self.spec

    def make_env(self, render_mode=None):
        return Lamps(len(self.possible_agents))

    def observation_space(self, agent):
        return self.space

    def action_space(self, agent):
        return self.actions

    def reset(self, seed=None, options=None):
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.agents, self.way = list(self.possible_agents), int(self.rng.integers(2))
        return self.look(), {agent: {} for agent in self.agents}

    def step(self, actions):
        acted, self.agents = self.agents, []
        won = all(action == self.way for action in actions.values())
        each = self.look(), float(won), True, False, {"won": won}
        return tuple(
            part if type(part) is dict and i == 0 else dict.fromkeys(acted, part) for i, part in enumerate(each)
        )

    def look(self):
        manual = np.stack([WORDS.encode(f"go {('north', 'south')[self.way]}", 3), WORDS.encode("", 3)])
        grid = np.array([[[0], [4]], [[0], [0]]], np.int16)
        return {
            agent: {"manual": manual, "grid": grid, "speed": np.zeros(2, np.float32)} for agent in self.possible_agents
        }


@pytest.fixture(autouse=True)
def own(monkeypatch):
    entry = mg.EnvEntry("lamps", "games_of_ones_own:Lamps", multi_agent=True)
    monkeypatch.setitem(ENVS._entries, "lamps", entry)
    monkeypatch.setitem(sys.modules, "games_of_ones_own", sys.modules[__name__])


def call(command, *words):
    return CommandLine("magrounding", tuple(map(str, words))).run(command)


def test_commands_play_and_show_games_without_a_mask(tmp_path, capsys):
    run, games = tmp_path / "run", tmp_path / "games"
    assert call(train, "--env", "lamps", "--budget", "0.001", "--workers", "0", "--agents", "3", "--out", run) == 0
    capsys.readouterr()
    assert call(watch, "--run", run) == 0
    assert "AGENT agent_2\n" in capsys.readouterr().out
    line = ("--env", "lamps", "--agents", "3", "--games", "2", "--out", games)
    assert call(match, *line, "--players", f"run:{run}", "random") == 0
    capsys.readouterr()
    assert call(replay, games / "games_0.jsonl", "--game", "1") == 0
    assert "MANUAL\ngo " in capsys.readouterr().out
