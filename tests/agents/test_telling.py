"""Tells: readers score each statement by what it says."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.teams.player import Player, shown_to

NARROW = {"channels": (8, 8, 8), "embedding": 8, "document_hidden": 8, "names": "shared", "match": "equal"}
READERS = {
    "relread": {"hidden": 16, "top": 16},
    "endi_dis_relread": {"hidden": 16, "top": 16},
    "txt2pi": NARROW,
    "endi_dis": NARROW,
}


def logits_of(policy, vec, observation, info):
    player = Player(policy, vec.spec, vec.num_envs, torch.Generator().manual_seed(0))
    shown = shown_to(0, observation, vec.spec, info.document)
    return player.choose(shown, np.ones(vec.num_envs, np.bool_), greedy=True).logits


@pytest.mark.parametrize("agent", READERS)
def test_what_is_legal_can_be_told_and_the_head_learns(agent):
    torch.manual_seed(0)
    vec = mg.make_vec("ma_rtfm", 32, stage="s2g", agents=2, reading="kind")
    observation, info = vec.reset(seed=0)
    policy = make_policy(agent, vec.spec, **READERS[agent])
    head = getattr(policy, "reader", policy) if agent == "endi_dis_relread" else policy
    head.tell.score.bias.data.fill_(50.0)
    player = Player(policy, vec.spec, 32, torch.Generator().manual_seed(0))
    chosen = player.choose(shown_to(0, observation, vec.spec, info.document), np.ones(32, np.bool_), greedy=True)
    assert (chosen.action >= vec.spec.num_actions - vec.spec.actions.tells).all()
    assert observation["action_mask"][np.arange(32), 0, chosen.action].all()
