"""Whole runs of networks that remember what they saw, and that ask something of the environment."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.emma.network import GameId
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import RunConfig, make_config, read_config
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.evaluation_config import EvaluationConfig
from magrounding.experiment.phase import Phase, Promotion
from magrounding.experiment.presets import find_preset
from magrounding.play.loading import load_team
from magrounding.play.run_folder import CONFIG_FILE
from magrounding.training.ppo import PPOConfig
from tests.experiment.tiny_runs import killed_run, quiet

BRIEF = RunConfig(
    preset="brief",
    about="Next to nothing.",
    agent="emma",
    phases={"*": (Phase(PPOConfig(unroll=6, weights={"contrast": 1.0}), Promotion(steps=72), num_envs=6),)},
    env_options={"max_cycles": 8},
    network={"width": 16, "maps": 4, "hidden": 8},
    evaluation=EvaluationConfig(
        selection_games=6, report_games=8, watched_sets=("train",), stage_sets=("train",), final_sets=("train",)
    ),
    log_every=1,
    save_every=0.0,
)


STATEFUL = replace(
    BRIEF,
    agent="sir_state",
    phases={"*": (Phase(PPOConfig(unroll=6), Promotion(steps=72), num_envs=6),)},
    network={"channels": (4, 6), "embedding": 4, "hidden": 4, "width": 8},
)


def weights(folder):
    return [torch.cat([p.flatten() for p in policy.parameters()]) for policy in load_team(folder).policies]


@pytest.mark.parametrize(
    ("preset", "shared"), [(BRIEF, False), (replace(BRIEF, agent="emma_game_id"), True), (STATEFUL, False)]
)
def test_a_killed_run_ends_the_same(preset, shared, tmp_path):
    settings = replace(preset, env="ma_messenger", stages=("s3",), share_parameters=shared)
    run_curriculum(settings, tmp_path / "whole", display=quiet(), device="cpu")
    killed_run(settings, tmp_path / "killed", lambda position: position["updates"] == 1)
    again = read_config(tmp_path / "killed")
    run_curriculum(again, tmp_path / "killed", resume=True, display=quiet(), device="cpu")
    for one, other in zip(weights(tmp_path / "whole"), weights(tmp_path / "killed"), strict=True):
        assert torch.equal(one, other)


def test_game_id_is_told_symbols_all_the_way(tmp_path):
    settings = replace(BRIEF, env="messenger", agent="emma_game_id", stages=("s1",))
    run_curriculum(settings, tmp_path / "run", display=quiet(), device="cpu")
    options = json.loads((tmp_path / "run" / CONFIG_FILE).read_text())["env_options"]
    assert options == {"max_cycles": 8, "game_id": True}
    team = load_team(tmp_path / "run")
    assert isinstance(team.policies[0], GameId)
    vec = mg.make_vec("messenger", 5, stage="s1", **options)
    observation, info = vec.reset(seed=0)
    actions, _ = team.act(observation, team.initial_memory(5), info)
    assert actions.shape == (5, 1)
    assert np.isin(actions, range(5)).all()
    lines = (tmp_path / "run" / "report.md").read_text()
    assert "reassigned" in lines
    with pytest.raises(ConfigurationError, match="unknown option of rtfm 'game_id'"):
        replace(BRIEF, env="rtfm", agent="emma_game_id", stages=("nl",))


def test_options_of_a_preset_are_its_own_agents():
    assert find_preset("quick_rl", "messenger").network
    for agent in ("emma", "emma_game_id"):
        assert make_config("messenger", agent, preset="quick_rl").network == {}
