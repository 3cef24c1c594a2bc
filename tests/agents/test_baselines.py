"""The baselines against their definition."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from magrounding.agents.building import make_policy
from magrounding.agents.modules import distance_map
from tests.agents.by_the_book import check_equations, read, weigh
from tests.agents.samples import NARROW, make_sample, make_spec


@pytest.mark.parametrize("modulate", [True, False])
def test_definition(modulate):
    torch.manual_seed(0)
    policy = make_policy("film" if modulate else "conv", make_spec(), **NARROW)

    def heard(part, ids):
        return weigh(read(policy.words, part.encoder, ids), part.attention.score)

    def by_definition(_, one, manual, goal):
        read_parts = (policy.goal, goal), (policy.document, manual), (policy.inventory, one["inventory"])
        text = torch.cat([heard(*each) for each in read_parts])
        x_pos = distance_map(one["position"][None], 6, 6)
        maps = [policy.words(one["grid"].long()).sum(2).permute(2, 0, 1)[None]]
        for i, layer in enumerate(policy.layers):
            entering = maps[3] + maps[2] if i == 3 else maps[-1]
            parts = [entering, x_pos]
            if modulate:
                gamma, beta = layer.text(text)[None, :, None, None].chunk(2, 1)
                maps.append(F.relu((1 + gamma) * layer.conv(torch.cat(parts, 1)) + beta))
            else:
                if i == 0:
                    parts.append(text[None, :, None, None].expand(1, -1, 6, 6))
                maps.append(F.relu(layer(torch.cat(parts, 1))))
        hidden = policy.head.hidden(maps[-1].flatten(2).max(2).values[0])
        return policy.head.policy(hidden), policy.head.baseline(hidden)[0]

    check_equations(policy, make_sample(10, 3), by_definition)
