"""EMMA and Game-ID against their definition, and what makes them fast against what is plain."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.emma.network import Emma, GameId
from magrounding.agents.weights import fit_weights
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.play.team import Team
from magrounding.training.ppo import PPOConfig, PPOLearner
from tests.agents.samples import batch_of, documents_of, make_sample, make_spec, one_by_one, seen_by
from tests.training.toy_games import collect

SMALL = {"width": 16, "maps": 6, "hidden": 12, "embedding": 8, "tokens": 31}
WORLDS = (
    ("messenger", {"stage": "s3"}),
    ("ma_messenger", {"stage": "s4", "agents": 2}),
    ("rtfm", {"task": "nl", "size": 6}),
)


def play(env, rows=6, steps=2, agent=0, seed=0, **options):
    """Spec, and the observations of an agent in the first steps of random games; what it reads stays the same."""
    vec = mg.make_vec(env, rows, copy=True, **options)
    draws = np.random.default_rng(seed)
    seen = [vec.reset(seed=seed)[0]]
    seen += [vec.step(draws.integers(0, vec.spec.num_actions, (rows, vec.num_agents)))[0] for _ in range(steps)]
    return vec.spec, [seen_by(agent, each, vec.spec) for each in seen], documents_of(seen[0])


def network(spec, agent="emma", seed=0, **options):
    """A small network whose attention tells sentences apart."""
    torch.manual_seed(seed)
    policy = make_policy(agent, spec, **(SMALL | options))
    assert isinstance(policy, Emma | GameId)
    with torch.no_grad():
        policy.symbols.weight.mul_(20)
    return policy


def remember(policy, frames):
    """The memory before the last of some frames, the first of which begin episodes."""
    memory = policy.initial_memory(len(frames[0]["grid"]))
    for frame in frames[:-1]:
        _, memory = policy.find(frame, torch.zeros(len(frame["grid"]), dtype=torch.int64), memory)
    return memory


def maps_of(policy, frame, text, memory=None):
    """What the cells show in each frame, [N, F · width, H, W], each observation reading a document of its own."""
    seen, _ = policy.find(frame, torch.arange(len(frame["grid"])), memory)
    return policy._ground(seen, text, torch.arange(len(frame["grid"])))


def count(module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_parameter_counts():
    """With states as wide as those of the paper's reader, which is not trained; untied, of each part too."""
    spec, *_ = play("messenger", stage="s2")
    emma, tied = (make_policy("emma", spec, embedding=768, tied_heads=tied) for tied in (False, True))
    own = {name: count(part) for name, part in emma.named_children() if name != "reader"}
    attention, linear = 768 + 1, 256 * (768 + 1)
    assert own == {
        "symbols": 25 * 256,
        "key_attention": attention,
        "value_attention": attention,
        "key": linear,
        "value": linear,
        "trunk": 64 * (4 * 768 + 1),
        "actor": 680_837,
        "critic": 680_321,
    }
    assert sum(own.values()) == 1_959_496
    assert count(tied) - count(tied.reader) == 1_959_496 - 128 * 129 == 1_942_984
    spec, *_ = play("messenger", stage="s2", game_id=True)
    game_id = make_policy("emma_game_id", spec)
    convolution, project, heads = 64 * (4 * 1536 + 1), 256 * (768 + 1), 680_837 + 680_321
    assert count(game_id) == 2 * 25 * 256 + convolution + project + heads
    assert not [name for name in emma.state_dict() if name in dict(emma.named_buffers())]


def test_tied_heads_have_one_layer_in_common():
    """Equal to untied heads with equal layers; its gradient is the sum of theirs, and files have it once."""
    spec, (frame, *_), texts = play("messenger", stage="s2")
    tied, untied = network(spec, tied_heads=True), network(spec)
    layer = {name.replace("actor.2", "critic.2"): p for name, p in tied.state_dict().items() if "actor.2" in name}
    untied.load_state_dict(tied.state_dict() | layer)
    outputs = []
    for policy in (tied, copy.deepcopy(tied), untied):
        output = policy.respond(Inputs(frame, policy.encode_text(*texts), torch.arange(6)))
        (output.logits[:, 0].sum() + output.value.square().sum()).backward()
        outputs.append(output)
    for output in outputs[1:]:
        assert torch.equal(output.logits, outputs[0].logits)
        assert torch.equal(output.value, outputs[0].value)
    both = untied.actor[2].weight.grad + untied.critic[2].weight.grad
    torch.testing.assert_close(tied.actor[2].weight.grad, both)
    assert not [name for name in tied.state_dict() if name.startswith("critic.2")]
    with pytest.raises(CheckpointError, match="belong to another network"):
        fit_weights(tied, untied.state_dict(), "a file")
    copied = copy.deepcopy(tied)
    with torch.no_grad():
        tied.actor[2].weight.zero_()
    assert copied.critic[2](torch.ones(SMALL["hidden"])).ne(tied.critic[2](torch.ones(SMALL["hidden"]))).any()


@pytest.mark.parametrize(("env", "options"), WORLDS)
@pytest.mark.parametrize("mask_pad", [False, True])
def test_the_maps_are_those_of_a_slow_loop(env, options, mask_pad):
    spec, frames, texts = play(env, **options)
    policy, n, width = network(spec, mask_pad=mask_pad), spec.num_agents, spec.grid.words_per_occupant
    got = maps_of(policy, frames[-1], policy.encode_text(*texts), remember(policy, frames))
    table, words = policy.symbols.weight, policy.reader.words.weight

    def summed(attention, linear, ids):
        kept = ids[ids > 0] if mask_pad else F.pad(ids, (0, SMALL["tokens"] - len(ids)))
        states = words[kept.long()]
        weights = (states @ attention.score.weight[0] + attention.score.bias).softmax(0)
        return (weights[:, None] * (states @ linear.weight.t() + linear.bias)).sum(0)

    for b, (k, frame) in itertools.product(range(6), enumerate(frames)):
        spoken = [line for line in texts[0][b] if line.any()]
        keys = torch.stack([summed(policy.key_attention, policy.key, line) for line in spoken])
        values = torch.stack([summed(policy.value_attention, policy.value, line) for line in spoken])
        for y, x in itertools.product(range(spec.grid.height), range(spec.grid.width)):
            symbols, agents = [], torch.zeros(16)
            for occupant in frame["grid"][b, y, x].view(-1, width).long():
                if occupant[0] in spec.grid.avatar_ids:
                    agents = agents + table[occupant].sum(0)
                elif occupant[0] not in spec.grid.scenery_ids:
                    symbols += [table[word] for word in occupant if word]
            told = torch.zeros(16)
            if symbols:
                attention = (keys @ torch.stack(symbols).mean(0) / 4).softmax(0)  # √16
                told = attention @ values / len(spoken)
            cell = got[b, 16 * k : 16 * (k + 1), y, x]  # the frames are stacked, the oldest first, and nothing moves
            torch.testing.assert_close(cell, (told + agents) / (1 + n), rtol=1e-4, atol=1e-5)


def test_empty_cells_are_nothing_and_attention_sums_to_one():
    spec, (frame, *_), texts = play("messenger", stage="s2")
    policy = network(spec)
    with torch.no_grad():
        policy.value.weight.zero_()
        policy.value.bias.fill_(3 * 2)  # of three sentences, one agent
    maps = maps_of(policy, frame, policy.encode_text(*texts))
    empty = (frame["grid"] == 0).all(3)
    entity = (frame["grid"][..., 0] > 1) & (frame["grid"][..., 0] < 14)
    assert (maps.permute(0, 2, 3, 1)[empty] == 0).all()
    torch.testing.assert_close(maps.permute(0, 2, 3, 1)[entity], torch.ones(18, 48))


def test_the_order_of_sentences_and_padding_behind_them_change_nothing():
    spec, (frame, *_), texts = play("messenger", stage="s3")
    policy, rows = network(spec), torch.arange(6)
    with torch.no_grad():
        expected = policy.respond(Inputs(frame, policy.encode_text(*texts), rows))
        manual = F.pad(texts[0][:, [3, 0, 5, 1, 4, 2]], (0, SMALL["tokens"] - texts[0].shape[2], 0, 2))
        got = policy.respond(Inputs(frame, policy.encode_text(manual, texts[1]), rows))
        others = policy.respond(Inputs(frame, policy.encode_text(texts[0].roll(1, 0), texts[1]), rows))
    torch.testing.assert_close(got.logits, expected.logits, rtol=0, atol=1e-6)
    torch.testing.assert_close(got.value, expected.value, rtol=0, atol=1e-6)
    assert not torch.allclose(others.value, expected.value, atol=1e-4)


@pytest.mark.parametrize(
    ("agent", "env", "options"),
    [*(("emma", *world) for world in WORLDS), ("emma_game_id", "ma_messenger", {"stage": "s3", "game_id": True})],
)
def test_looking_at_occupied_cells_only_is_the_dense_convolution(agent, env, options):
    spec, frames, texts = play(env, **options)
    outputs, gradients = [], []
    for sparse in (True, False):
        policy = network(spec, agent, sparse=sparse)
        output = policy.respond(
            Inputs(frames[-1], policy.encode_text(*texts), torch.arange(6)), remember(policy, frames)
        )
        (output.logits.softmax(-1)[:, 0].sum() + output.value.square().sum()).backward()
        outputs.append(output)
        gradients.append({name: p.grad for name, p in policy.named_parameters()})
    torch.testing.assert_close(outputs[0].logits, outputs[1].logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(outputs[0].value, outputs[1].value, rtol=1e-4, atol=1e-5)
    assert torch.equal(outputs[0].memory, outputs[1].memory)
    # A softmax over what a layer scores does not notice the layer's bias: its gradient is rounding.
    assert all(g.any() for name, g in gradients[1].items() if not name.endswith("score.bias"))
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-3, atol=1e-5, msg=name)


def test_a_map_without_anybody():
    spec, (frame, *_), texts = play("messenger", stage="s2")
    nobody = frame | {"grid": torch.zeros_like(frame["grid"])}
    values = []
    for sparse in (True, False):
        policy = network(spec, sparse=sparse)
        values.append(policy.respond(Inputs(nobody, policy.encode_text(*texts), torch.arange(6))).value)
    torch.testing.assert_close(*values)


class StepByStep(Emma):
    """EMMA as if only the network itself knew what it will remember."""

    def memories(self, memory, observation, restarts):
        return None


@pytest.mark.parametrize("late", ["lost", "cut off"])
def test_all_steps_at_once_are_one_after_the_other(late):
    """Two rollouts of short games, the second of which begins in the middle of some."""
    vec = mg.make_vec("ma_messenger", 6, stage="s3", agents=2, max_cycles=5)
    vec.spec = replace(vec.spec, time_limit_is_loss=late == "lost")
    policies = [network(vec.spec, seed=i) for i in range(2)]
    rollout = collect(vec, policies, unroll=7, skip=1)
    (trajectory,) = rollout.joined()
    assert trajectory.restarts[1:].any()
    assert not trajectory.restarts[0].all()
    assert bool(len(trajectory.truncations)) == (late == "cut off")
    slow = StepByStep(vec.spec, policies[0].config)
    slow.load_state_dict(policies[0].state_dict())
    games = np.array([1, 4, 5, 8, 10])
    at_once, in_turn = (
        PPOLearner(policy, PPOConfig()).reevaluate(trajectory.games(games)) for policy in (policies[0], slow)
    )
    for got, expected in zip(at_once[:3], in_turn[:3], strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    own = rollout.trajectories[0]
    logits = PPOLearner(policies[0], PPOConfig()).reevaluate(own.games(np.arange(6))).logits
    torch.testing.assert_close(logits, torch.from_numpy(own.logits), rtol=1e-4, atol=1e-5)
    known, slowly = (PPOLearner(policy, PPOConfig()).rollout_values(own.on("cpu")) for policy in (policies[0], slow))
    for got, expected in zip(known, slowly, strict=True):
        torch.testing.assert_close(got, expected.detach(), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_many_steps_are_that_many_single_ones():
    spec, frames, texts = play("messenger", steps=5, stage="s3")
    policy = network(spec)
    observation = {name: torch.stack([frame[name] for frame in frames]) for name in frames[0]}
    restarts = torch.zeros(6, 6, dtype=torch.bool)
    restarts[0] = restarts[2, 1] = restarts[4, 3:] = True
    batch = batch_of(policy, observation, *texts, restarts)
    output = policy(batch)
    values, memory = output.value, output.memory
    assert memory is not None
    assert memory.shape == (6, 6, 2, *spec.grid.shape)
    logits, one_by_one_values, memories = one_by_one(policy, batch)
    torch.testing.assert_close(output.logits, logits, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(values, one_by_one_values, rtol=1e-4, atol=1e-6)
    assert torch.equal(memory, memories)
    fresh = policy(
        batch_of(policy, {k: v[4:, 3:] for k, v in observation.items()}, *(t[3:] for t in texts), restarts[:2, 3:])
    )
    torch.testing.assert_close(values[4:, 3:], fresh.value, rtol=1e-4, atol=1e-6)


def test_an_episode_begins_with_three_times_its_first_frame():
    spec, frames, texts = play("messenger", stage="s2")
    policy = network(spec)
    text = policy.encode_text(*texts)
    first = maps_of(policy, frames[0], text)
    assert torch.equal(first[:, :16], first[:, 16:32])
    assert torch.equal(first[:, :16], first[:, 32:])
    assert torch.equal(first, maps_of(policy, frames[0], text, policy.initial_memory(6)))
    second = maps_of(policy, frames[1], text, remember(policy, frames[:2]))
    assert torch.equal(second[:, :32], first[:, :32])
    assert not torch.equal(second[:, 32:], first[:, 32:])


def test_a_team_remembers_in_single_games_too():
    env = mg.make("ma_messenger", stage="s3", agents=2)
    vec = mg.make_vec("ma_messenger", 1, stage="s3", agents=2)
    team = Team([network(vec.spec, seed=i) for i in range(2)], vec.spec)
    alone, together = team.initial_memory(1), team.initial_memory(1)
    seen, infos = env.reset(seed=3)[0], None
    many, info = vec.reset(seed=3)
    for _ in range(4):
        actions, alone = team.act(seen, alone, infos)
        same, together = team.act(many, together, info)
        assert list(actions.values()) == same[0].tolist()
        seen, _, _, _, infos = env.step(actions)
        many, _, _, _, info = vec.step(same)
    assert torch.equal(alone[0].memory, together[0].memory)
    assert (alone[0].memory[:, 0] != alone[0].memory[:, 1]).any()


def test_the_loss_is_that_of_a_slow_loop():
    spec, (frame, *_), texts = play("messenger", rows=5, stage="s3")
    policy = network(spec)
    text = policy.encode_text(*texts)
    score = torch.zeros(5, 5)
    for i, j in itertools.product(range(5), range(5)):
        for symbol in frame["grid"][i].flatten().long():
            if 2 <= symbol <= 13:  # an entity, once for each time it is there
                score[i, j] += (text["key"][j] @ policy.symbols.weight[symbol] / 4).logsumexp(0)
    expected = sum(-s.log_softmax(1).diagonal().mean() for s in (score, score.t())) / 2
    torch.testing.assert_close(policy.contrast(frame, text), expected)


@pytest.mark.parametrize("game_id", [False, True])
def test_rows_of_padding_stay_zero(game_id):
    spec, frames, texts = play("messenger", stage="s2", game_id=game_id)
    policy = network(spec, "emma_game_id" if game_id else "emma")
    tables = [module for module in policy.modules() if isinstance(module, torch.nn.Embedding)]
    before = copy.deepcopy(tables)
    optimizer = torch.optim.RMSprop(policy.parameters(), 0.01)
    policy.respond(Inputs(frames[0], policy.encode_text(*texts), torch.arange(6))).value.sum().backward()
    optimizer.step()
    assert len(tables) == 2
    for table, old in zip(tables, before, strict=True):
        assert not table.weight[0].any()
        assert not torch.equal(table.weight, old.weight)


@pytest.mark.parametrize("game_id", [False, True])
def test_masked_actions_are_impossible_and_harmless(game_id):
    spec, (frame, *_), texts = play("messenger", stage="s2", game_id=game_id)
    policy = network(spec, "emma_game_id" if game_id else "emma")
    frame["action_mask"][:3] = torch.tensor([1, 0, 0, 0, 0], dtype=torch.int8)
    output = policy.respond(Inputs(frame, policy.encode_text(*texts), torch.arange(6)))
    allowed, log_probabilities = frame["action_mask"].bool(), output.logits.log_softmax(-1)
    assert (log_probabilities.exp()[~allowed] == 0).all()
    loss = -(log_probabilities.exp() * log_probabilities).sum() - log_probabilities[:, 0].sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in policy.parameters())


@pytest.mark.parametrize("agent", ["emma", "emma_game_id"])
def test_learns_sixteen_transitions_by_heart(agent):
    spec, frames, texts = play("messenger", rows=16, steps=0, stage="s1", game_id=agent == "emma_game_id")
    policy = network(spec, agent)
    allowed = frames[0]["action_mask"].bool()
    draws = torch.rand(16, 5, generator=torch.Generator().manual_seed(2))
    action = draws.where(allowed, torch.tensor(-1.0)).argmax(1)
    optimizer = torch.optim.Adam(policy.parameters(), 0.005)
    accuracy = []
    while len(accuracy) < 500 and max(accuracy, default=0) <= 0.95:
        logits = policy.respond(Inputs(frames[0], policy.encode_text(*texts), torch.arange(16))).logits
        accuracy.append((logits.argmax(1) == action).float().mean().item())
        optimizer.zero_grad()
        F.cross_entropy(logits, action).backward()
        optimizer.step()
    assert accuracy[0] < 0.7
    assert accuracy[-1] > 0.95


def test_bfloat16():
    spec, frames, texts = play("messenger", stage="s2")
    policy = network(spec)
    expected = policy.respond(Inputs(frames[0], policy.encode_text(*texts), torch.arange(6)))
    with torch.autocast("cpu", torch.bfloat16):
        output = policy.respond(Inputs(frames[0], policy.encode_text(*texts), torch.arange(6)))
    assert output.logits.dtype == output.value.dtype == torch.float32
    torch.testing.assert_close(output.value, expected.value, rtol=0.05, atol=0.05)
    output.value.sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in policy.parameters())


def test_a_made_up_world_with_several_words_a_cell():
    policy, batch = network(make_spec()), make_sample(9, 3)
    output = policy.respond(Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document))
    for n in range(9):
        one = {name: tensor[n : n + 1] for name, tensor in batch.observation.items()}
        alone = policy.respond(Inputs(one, policy.encode_text(batch.manual, batch.goal), batch.document[n : n + 1]))
        torch.testing.assert_close(alone.logits[0], output.logits[n], rtol=1e-5, atol=1e-6)


def test_what_cannot_be_is_said():
    assert network(make_spec(6)).grid_shape == (6, 6, 4)
    with pytest.raises(ConfigurationError, match="set game_id of the environment"):
        make_policy("emma_game_id", play("messenger", stage="s1")[0])
    with pytest.raises(ConfigurationError, match="at least 2 × 2 cells, got 1 × 1"):
        make_policy("emma", make_spec(1))
    with pytest.raises(ConfigurationError, match="unknown option of emma 'maks_pad'"):
        make_policy("emma", make_spec(), maks_pad=True)
