"""txt2π against its equations, written out for one observation without batches, packing or fused maps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from magrounding.agents.document_policy import Inputs
from magrounding.agents.modules import distance_map
from magrounding.agents.txt2pi import Txt2Pi, make_txt2pi
from tests.agents.by_the_book import attend, check_equations, convolve, modulate_both, read, weigh
from tests.agents.samples import NARROW, make_sample, make_spec


def narrow(**options) -> Txt2Pi:
    torch.manual_seed(0)
    return make_txt2pi(make_spec(), **(NARROW | options))


def by_the_book(policy: Txt2Pi, observation: dict[str, Tensor], manual: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [A], before masking, and value of one observation (RTFM eq. 1–22)."""
    reader, config = policy.reader, policy.config

    c_goal = weigh(read(reader.words, reader.goal, goal), reader.goal_attention.score)
    c_inv = weigh(read(reader.words, reader.inventory, observation["inventory"]), reader.inventory_attention.score)
    c_doc = attend(read(reader.words, reader.goal, manual), c_goal)
    h_vd = read(reader.words, reader.document, manual)
    fixed = ([c_goal] if config.goal_in_text or not config.task_attention else []) + (
        [c_doc] if config.task_attention else []
    )
    fixed.append(c_inv)
    x_pos = distance_map(observation["position"][None], *observation["grid"].shape[:2])[0]
    maps = [reader.words(observation["grid"].long()).sum(2).permute(2, 0, 1)]
    ini = policy.grounding.initial
    cells = torch.cat((maps[0], x_pos)).flatten(1)  # [C, H·W]
    if ini is None:
        u = None
    elif config.initial_query == "project_max":
        u = (ini.weight @ cells + ini.bias[:, None]).max(1).values
    else:
        u = ini(cells.max(1).values)
    depth = len(config.channels)
    for i, layer in enumerate(policy.grounding.layers, start=1):
        entering = maps[-1]
        if i == depth and depth >= 3 and config.channels[i - 2] == config.channels[i - 3]:
            entering = maps[i - 1] + maps[i - 2]  # V_(L-1) + V_(L-2)
        heard = weigh(h_vd, reader.document_attention.score) if u is None else attend(h_vd, u)
        text = torch.cat((*fixed, heard)) if u is not None else torch.cat((*fixed[:-1], heard, c_inv))
        convolved = convolve(layer, entering, x_pos)
        if config.text_modulation:
            v = modulate_both(layer, convolved, text)
        else:
            gamma, beta = layer.text(text)[:, None, None].chunk(2)
            v = torch.relu((1 + gamma) * convolved + beta)
        maps.append(v)
        if u is not None and i < depth:
            u = layer.query(v.flatten(1).max(1).values)
    o = policy.head.hidden(maps[-1].flatten(1).max(1).values)
    return policy.head.policy(o), policy.head.baseline(o)[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"profile": "code"},
        {"task_attention": False},
        {"visual_attention": False},
        {"text_modulation": False},
        {"channels": [6, 8, 8]},
        {"channels": [6]},
        {"channels": [6, 6]},
    ],
)
def test_equations(options):
    policy = narrow(**options)
    check_equations(policy, make_sample(20, 3), lambda _, *shown: by_the_book(policy, *shown))


def test_the_released_learner_sees_no_positions():
    """Acting does; and the profile of the paper sees them in both."""
    batch = make_sample(8, 3)
    nowhere = batch.observation | {"position": torch.full_like(batch.observation["position"], -1)}

    def values(policy, observation):
        inputs = Inputs(observation, policy.encode_text(batch.manual, batch.goal), batch.document)
        return policy.respond(inputs).value.detach()

    for options, blind in (({"profile": "code"}, True), ({"profile": "code", "positions": "seen"}, False), ({}, False)):
        policy = narrow(**options)
        with torch.no_grad():
            acting, elsewhere = values(policy, batch.observation), values(policy, nowhere)
        assert not torch.isclose(acting[1:], elsewhere[1:], rtol=0, atol=1e-7).any()
        learning = values(policy, batch.observation)
        torch.testing.assert_close(learning, elsewhere if blind else acting)
