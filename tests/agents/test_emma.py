"""EMMA and Game-ID against their definition, and what makes them fast against what is plain."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.emma.network import Emma, GameId
from magrounding.agents.policy import PolicyOutput
from magrounding.agents.weights import fit_weights
from magrounding.errors import CheckpointError
from tests.agents.samples import documents_of, seen_by

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
    """What the cells show in each frame, [N, F · C, H, W], each observation reading a document of its own."""
    seen, _ = policy.find(frame, torch.arange(len(frame["grid"])), memory)
    shown = sum(policy.show(seen, text)).index_select(0, seen.which)
    n, history, height, width = seen.shape
    cells = shown.new_zeros(n * history * height * width, shown.shape[1]).index_copy(0, seen.place, shown)
    same = policy.constants(text)
    if same is not None:
        cells = torch.cat((cells, same.repeat_interleave(len(cells) // n, 0)), 1)
    return cells.view(*seen.shape, -1).permute(0, 1, 4, 2, 3).flatten(1, 2)


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
    with pytest.raises(CheckpointError):
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


@pytest.mark.parametrize(
    ("agent", "env", "options"),
    [*(("emma", *world) for world in WORLDS), ("emma_game_id", "ma_messenger", {"stage": "s3", "game_id": True})],
)
def test_looking_at_occupied_cells_only_is_the_dense_convolution(agent, env, options):
    spec, frames, texts = play(env, **options)
    policy, memory = network(spec, agent), remember(network(spec, agent), frames)
    output = policy.respond(Inputs(frames[-1], policy.encode_text(*texts), torch.arange(6)), memory)
    dense = policy.trunk(maps_of(policy, frames[-1], policy.encode_text(*texts), memory)).permute(0, 2, 3, 1)
    logits, value = policy.decide(F.leaky_relu(dense).flatten(1))
    wanted, gradients = PolicyOutput.masked(logits, value, frames[-1], memory), []
    for got in (output, wanted):
        policy.zero_grad()
        (got.logits.softmax(-1)[:, 0].sum() + got.value.square().sum()).backward()
        gradients.append({name: p.grad for name, p in policy.named_parameters()})
    torch.testing.assert_close(output.logits, wanted.logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(output.value, wanted.value, rtol=1e-4, atol=1e-5)
    # A softmax over what a layer scores does not notice the layer's bias: its gradient is rounding.
    assert all(g.any() for name, g in gradients[1].items() if not name.endswith("score.bias"))
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-3, atol=1e-5, msg=name)


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
