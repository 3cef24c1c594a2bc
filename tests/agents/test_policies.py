"""What every agent's network owes its learner: a replay is what acted, games do not mix, and every weight learns."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import Policy, mask_logits
from magrounding.errors import ConfigurationError
from magrounding.single.babyai import BabyAI
from magrounding.spec import EnvSpec, Grid, TextChoices
from magrounding.training.ppo import PPOConfig, PPOLearner
from magrounding.training.rollout import RolloutWorker
from magrounding.training.trajectory import Trajectory
from tests.agents.samples import NARROW, NARROW_SIR, READERS, make_sample, make_spec, narrow_options
from tests.tiny_rooms import TinyRooms
from tests.training.order_game import OrderGame
from tests.training.toy_games import players_of

pytestmark = [
    pytest.mark.extension("lge", only="drrn"),
    pytest.mark.extension("running_text", only="running text"),
]

GAMES, STEPS = 6, 7
SILG = {"embedding": 8, "hidden": 8, "width": 16, "channels": (4, 4)}
EMMA = {"width": 16, "maps": 6, "hidden": 12, "embedding": 8, "tokens": 31}
SYMBOLS = {"similarity": 8, "meaning": 4, "motion": 4, "hidden": 32, "top": 16}
DRRN = {"vocabulary": "words", "embedding": 6, "hidden": 5}
CHOICES = {"embedding": 8, "states": 16, "role": 6, "hidden": 12}
BABYAI = {"words": 8, "channels": 6, "memory": 10, "head": 5}
ENDI = {"endi_dis": NARROW, "endi_dis_emma": EMMA, "endi_dis_relread": {"hidden": 32, "top": 32}}

RTFM = ("ma_rtfm", {"stage": "s5", "agents": 2, "max_cycles": 5})
MERGED = ("ma_rtfm", {"stage": "s5", "agents": 2, "max_cycles": 5, "layout": "merged"})
DEATHS = ("ma_rtfm", {"stage": "s2", "agents": 3, "max_cycles": 5, "death": "individual"})
TEAM = ("ma_messenger", {"stage": "s4", "agents": 2, "max_cycles": 5})
TOLD = ("ma_messenger", {"stage": "s3", "agents": 2, "max_cycles": 5, "game_id": True})
ROOMS = ("babyai", {"level": "GoToObj", "max_cycles": 5})
PLACES = ("babyai", {"level": "GoToLocal", "max_cycles": 5, "displacement": True})
STREETS = ("touchdown", {"patch": 4, "turned": True, "max_cycles": 5})
TEXTS = {"tiny rooms": TinyRooms, "order": OrderGame}

CASES: dict[str, tuple[str, tuple[str, dict[str, Any]], dict[str, Any]]] = {
    **{agent: (agent, RTFM, narrow_options(agent)) for agent in READERS},
    "txt2pi as released": ("txt2pi", RTFM, {**NARROW, "profile": "code", "positions": "seen"}),
    "sir_state": ("sir_state", RTFM, NARROW_SIR),
    "sir_state of symbols": ("sir_state", TEAM, {**NARROW_SIR, "symbol_table": True}),
    "sir of texts": ("sir", ("tiny rooms", {}), {**SILG, "state": True}),
    "emma": ("emma", TEAM, EMMA),
    "emma of words": ("emma", ("rtfm", {"task": "nl", "size": 6, "max_cycles": 5}), EMMA),
    "emma_game_id": ("emma_game_id", TOLD, {**EMMA}),
    "relread": ("relread", DEATHS, {"hidden": 32, "top": 32}),
    "relread by words": ("relread", RTFM, {"hidden": 32, "top": 32, "phrases": False}),
    "relread of running text": ("relread", MERGED, {"hidden": 32, "top": 32, "segments": "stops"}),
    "relread of symbols": ("relread", TEAM, SYMBOLS),
    **{agent: (agent, TEAM if "emma" in agent else DEATHS, options) for agent, options in ENDI.items()},
    "endi_reg_relread of symbols": ("endi_reg_relread", TEAM, SYMBOLS),
    "qmix": ("qmix", RTFM, {"maps": 4, "hidden": 8, "embedding": 4}),
    "qmix_relread": ("qmix_relread", RTFM, {"hidden": 16, "top": 16}),
    **{agent: (agent, ROOMS, BABYAI) for agent in ("babyai_small", "babyai_large")},
    "viewread": ("viewread", ROOMS, {"centred": True}),
    "viewread without a memory": ("viewread", ROOMS, {"remember": False}),
    "viewread with places": ("viewread", PLACES, {"places": True}),
    "panoread": ("panoread", STREETS, {"embedding": 8, "hidden": 8}),
    "choiceread": ("choiceread", ("tiny rooms", {}), CHOICES),
    **{agent: (agent, ("order", {}), DRRN) for agent in ("drrn", "drrn_bow")},
    "fieldread": ("fieldread", RTFM, {}),
    "fieldread of texts": ("fieldread", ("tiny rooms", {}), {}),
}
"""Name → agent, its world, and what makes it small."""

STILL = {
    "sir of texts": {"grounding.initial.weight", "grounding.layers.0.conv.weight"},  # there is no map
    # No symbol is in any manual; what motion is foreseen by begins at 0 (`test_motion`).
    "relread of symbols": {"reader.sharpness", "reader.moves.gaits.weight"},
    "endi_reg_relread of symbols": {"reader.reader.sharpness", "reader.reader.moves.gaits.weight"},
    "viewread with places": {  # no two things share a word, and nothing is held (`test_places`)
        *(f"ways.{part}.{kind}" for part in ("sends", "held_sends") for kind in ("weight", "bias")),
        "ways.receives.weight",
    },
    "drrn": {"texts.1.weight_hh_l0"},  # of texts of one word
}
"""Weights that make no difference in what is shown here."""


class Played(NamedTuple):
    """A network, and what it did in unrolls that began in the middle of some episodes."""

    policy: Policy
    trajectory: Trajectory


@cache
def played(name: str) -> Played:
    agent, (env, options), network = CASES[name]
    if env == "babyai":
        pytest.importorskip("minigrid", reason="the extra `babyai` is absent")
    make = TEXTS.get(env)
    vec = mg.vectorize(make, GAMES) if make else mg.make_vec(env, GAMES, **options)
    torch.manual_seed(0)
    policies = [make_policy(agent, vec.spec, **network) for _ in range(vec.num_agents)]
    if agent.startswith("qmix"):
        policies = [policy.as_agent(i) for i, policy in enumerate(policies)]
    for policy in policies:  # some are nearly indifferent as made, which would hide differences
        for key, weight in policy.named_parameters():
            if key in ("policy.weight", "reader.policy.weight", "policy.2.weight"):
                nn.init.normal_(weight)
    worker = RolloutWorker(vec, players_of(vec, policies), STEPS)
    worker.start(seed=3)
    worker.collect()
    trajectory = worker.collect().trajectories[0]
    vec.close()
    return Played(policies[0], trajectory)


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_a_replay_is_what_acted(name):
    """All steps at once are single steps one after another, which act on what was read before."""
    policy, trajectory = played(name)
    assert trajectory.restarts[1:].any()
    assert not trajectory.restarts[0].all()
    now = PPOLearner(policy, PPOConfig()).reevaluate(trajectory.games())
    torch.testing.assert_close(now.logits, torch.from_numpy(trajectory.logits), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(now.value, torch.from_numpy(trajectory.value), rtol=1e-4, atol=1e-4)
    chances, offered = now.logits.softmax(-1), trajectory.observation["action_mask"][:-1] == 1
    assert (chances[~offered] == 0).all()
    assert chances[offered].std() > 0


@pytest.mark.parametrize("name", [name for name in CASES if "babyai" not in name])
@torch.no_grad()
def test_games_do_not_mix(name):
    """Nor do their texts, which are as long as the longest among them, and are read once."""
    policy, trajectory = played(name)
    some = np.array([4, 1])
    learner = PPOLearner(policy, PPOConfig())
    every, alone = (learner.reevaluate(trajectory.games(each)) for each in (None, some))
    torch.testing.assert_close(alone.logits, every.logits[:, some], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alone.value, every.value[:, some], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_memory_matters_until_an_episode_ends(name):
    policy, trajectory = played(name)
    batch = policy.encode_batch(trajectory.games().inputs)
    if batch.memory is None:
        assert policy.initial_memory(GAMES) is None
        return
    same, other = policy(batch), policy(batch._replace(memory=batch.memory.roll(1, 0)))
    begun = batch.restarts.cumsum(0) > 0
    torch.testing.assert_close(other.value[begun], same.value[begun], rtol=1e-4, atol=1e-5)
    assert (other.value - same.value)[~begun].abs().max() > 1e-6


@pytest.mark.parametrize("name", CASES)
def test_every_weight_learns(name):
    policy, trajectory = played(name)
    seen = trajectory.observation
    if "inventory" in seen:  # nobody has picked up anything yet
        held = np.random.default_rng(0).integers(1, 9, seen["inventory"].shape, np.int16)
        trajectory = replace(trajectory, observation={**seen, "inventory": held})
    policy.zero_grad(set_to_none=True)
    now = PPOLearner(policy, PPOConfig()).reevaluate(trajectory.games())
    chosen = torch.from_numpy(trajectory.action).unsqueeze(-1)
    loss = now.value.square().sum() - now.logits.log_softmax(-1).gather(-1, chosen).sum()
    (loss + sum(each.sum() for each in now.auxiliary.losses.values())).backward()
    # A softmax over what a layer scores does not notice the layer's bias: its gradient is rounding, or none.
    weights = {key: each for key, each in policy.named_parameters() if not key.endswith("score.bias")}
    still = {key for key, each in weights.items() if each.grad is None or not each.grad.any()}
    assert still <= STILL.get(name, set())
    assert all(each.grad.isfinite().all() for each in weights.values() if each.grad is not None)
    for table in policy.modules():
        if isinstance(table, nn.Embedding) and table.padding_idx is not None and table.weight.grad is not None:
            assert not table.weight[table.padding_idx].any()
            assert not table.weight.grad[table.padding_idx].any()


@pytest.mark.parametrize("name", CASES)
def test_bfloat16_is_near(name, monkeypatch):
    monkeypatch.setattr("magrounding.agents.own_defaults._NATIVE", True)
    policy, trajectory = played(name)
    policy.zero_grad(set_to_none=True)
    exact, rough = (PPOLearner(policy, PPOConfig(bf16=on)).reevaluate(trajectory.games()) for on in (False, True))
    assert rough.logits.dtype == rough.value.dtype == torch.float32
    torch.testing.assert_close(rough.value, exact.value, rtol=0.1, atol=0.1)
    assert not torch.equal(rough.value, exact.value)
    (rough.logits.log_softmax(-1)[..., 0].sum() + rough.value.sum()).backward()
    grads = [each.grad for each in policy.parameters() if each.grad is not None]
    assert all(each.dtype == torch.float32 and each.isfinite().all() for each in grads)


@pytest.mark.parametrize(
    ("agent", "options", "parameters"),
    [
        ("txt2pi", {}, 1_016_892),
        ("txt2pi", {"head": "code"}, 696_092),
        ("txt2pi", {"profile": "code"}, 912_872),
        ("txt2pi_no_task_attn", {}, 1_002_492),
        ("txt2pi_no_vis_attn", {}, 974_493),
        ("txt2pi_no_text_mod", {}, 742_956),
        ("conv", {"head": "code"}, 545_717),
        ("conv", {}, 866_517),
        ("conv", {"head": "code", "encoder": "gru"}, 466_517),
        ("film", {"head": "code"}, 370_157),
        ("film", {}, 690_957),
        ("film", {"head": "code", "encoder": "gru"}, 342_077),
    ],
)
def test_parameter_counts(agent, options, parameters):
    policy = make_policy(agent, make_spec(8, vocabulary_size=262), **options)
    assert sum(p.numel() for p in policy.parameters()) == parameters
    assert all(p.requires_grad for p in policy.parameters())
    assert not list(policy.buffers())


@pytest.mark.parametrize("agent", READERS)
def test_one_set_of_weights_for_every_size(agent):
    torch.manual_seed(0)
    policy = make_policy(agent, make_spec(), **narrow_options(agent))
    for size in (6, 10):
        batch = make_sample(6, 4, size)
        output = policy.respond(Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document))
        assert output.logits.shape == (6, 5)
        assert output.value.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_mask_logits_stays_finite(dtype):
    logits = mask_logits(torch.zeros(1, 3, dtype=dtype), torch.tensor([[1, 0, 1]], dtype=torch.int8))
    assert logits.dtype == dtype
    assert torch.isfinite(logits).all()
    torch.testing.assert_close(logits.softmax(-1), torch.tensor([[0.5, 0, 0.5]], dtype=dtype), rtol=0, atol=0)


def without(*names: str, spec: EnvSpec | None = None) -> EnvSpec:
    spec = spec or make_spec()
    return replace(spec, fields=tuple(field for field in spec.fields if field.name not in names))


def turning() -> EnvSpec:
    fields = (replace(each, egocentric=True) if isinstance(each, Grid) else each for each in make_spec().fields)
    return replace(make_spec(), fields=tuple(fields))


CHOOSING = replace(make_spec(), actions=TextChoices(5, 4))
CELLS = BabyAI().describe()


@pytest.mark.parametrize(
    ("agent", "spec", "options"),
    [
        *(("txt2pi", spec, {}) for spec in (turning(), without("position"), CHOOSING, without("action_mask"))),
        ("endi_dis", without("teammates"), {}),
        ("sir_local_conv", turning(), {}),  # where it stands on its own map is not its position
        ("sir", without("grid", "position"), {"symbol_table": True}),
        ("emma", make_spec(1), {}),
        ("emma_game_id", make_spec(), {}),  # no world's symbols are told
        ("qmix_relread", make_spec(), {"motion": 8}),  # it remembers nothing
        ("relread", make_spec(), {"segments": "sentences"}),
        ("viewread", replace(CELLS, fields=make_spec().fields), {}),
        ("viewread", CELLS, {"places": True}),
        ("babyai_small", replace(CELLS, words=(*CELLS.words[:-1], "elsewhere")), {}),
        ("panoread", make_spec(), {}),
        ("choiceread", without("said", spec=TinyRooms.spec), {}),
        ("drrn", make_spec(), {}),
        ("txt3pi", make_spec(), {}),
        ("txt2pi", make_spec(), {"chanels": [8]}),
        ("txt2pi", make_spec(), {"channels": [8, 0]}),
        ("txt2pi", make_spec(), {"reasons": True, "visual_attention": False}),
        ("sir_state", make_spec(), {"state": False}),
        ("sir", make_spec(), {"bert": True}),
    ],
)
def test_what_a_network_is_not_made_for_is_refused(agent, spec, options):
    with pytest.raises(ConfigurationError):
        make_policy(agent, spec, **options)
