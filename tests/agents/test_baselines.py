"""The baselines against their definition."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.modules import distance_map
from tests.agents.samples import NARROW, make_sample, make_spec


@pytest.mark.parametrize("modulate", [True, False])
def test_definition(modulate):
    torch.manual_seed(0)
    policy = make_policy("film" if modulate else "conv", make_spec(), **NARROW)
    batch = make_sample(10, 3)

    def read(part, ids):
        words = ids.flatten()[ids.flatten() > 0].long()
        vectors = policy.words(torch.cat((words, words.new_zeros(1))))
        states = torch.cat((part.encoder.ahead(vectors)[0], part.encoder.back(vectors.flip(0))[0].flip(0)), 1)
        return (states @ part.attention.score.weight[0] + part.attention.score.bias).softmax(0) @ states

    with torch.no_grad():
        output = policy.respond(Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document))
        for n, u in enumerate(batch.document):
            one = {name: tensor[n] for name, tensor in batch.observation.items()}
            text = torch.cat(
                [
                    read(policy.goal, batch.goal[u]),
                    read(policy.document, batch.manual[u]),
                    read(policy.inventory, one["inventory"]),
                ]
            )
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
            allowed = one["action_mask"].bool()
            torch.testing.assert_close(
                output.logits[n][allowed], policy.head.policy(hidden)[allowed], rtol=1e-5, atol=1e-6
            )
            torch.testing.assert_close(output.value[n], policy.head.baseline(hidden)[0], rtol=1e-5, atol=1e-6)
