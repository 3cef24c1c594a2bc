"""The baselines against their definition."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from magrounding.agents.baselines import convolve_with_constants
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.modules import distance_map
from tests.agents.samples import NARROW, make_sample, make_spec


@pytest.mark.parametrize("shape", [(6, 6), (3, 5), (1, 1), (2, 1)])
def test_constant_channels(shape):
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(4 + 7, 5, 3, padding=1)
    features, constants = torch.randn(3, 4, *shape), torch.randn(3, 7)
    tiled = constants[:, :, None, None].expand(3, 7, *shape)
    torch.testing.assert_close(
        convolve_with_constants(conv, features, constants), conv(torch.cat((features, tiled), 1)), rtol=1e-5, atol=1e-6
    )


def test_first_layers_see_texts_and_positions():
    conv = make_policy("conv", make_spec())
    assert [layer.in_channels for layer in conv.layers] == [632, 18, 34, 66, 66]
    film = make_policy("film", make_spec())
    assert [layer.conv.in_channels for layer in film.layers] == [32, 18, 34, 66, 66]
    assert [layer.text.in_features for layer in film.layers] == [240] * 5


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
