"""Whole runs of networks that remember what they saw, and that ask something of the environment."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from magrounding.experiment.config import RunConfig
from magrounding.experiment.phase import EvaluationConfig, Phase, Promotion
from magrounding.teams.loading import load_team
from magrounding.training.ppo import PPOConfig
from tests.experiment.tiny_runs import killed_run, learn, resume

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
    learn(settings, tmp_path / "whole")
    killed_run(settings, tmp_path / "killed", lambda position: position["updates"] == 1)
    resume(tmp_path / "killed")
    for one, other in zip(weights(tmp_path / "whole"), weights(tmp_path / "killed"), strict=True):
        assert torch.equal(one, other)
