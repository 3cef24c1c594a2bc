"""EMMA and EnDi on EMMA in a world of symbols, against slow loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.emma.network import Emma
from magrounding.agents.policy import Policy
from magrounding.endi.on_emma import EnDiEmma
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Grid, Mask, Text
from tests.agents.by_the_book import weigh

SIZE, WIDTH, TOKENS, AVATARS = 5, 8, 7, (15, 16)
NARROW_EMMA = {"width": WIDTH, "maps": 4, "hidden": 6, "embedding": 5, "tokens": TOKENS}


def symbols_spec(agents: int) -> EnvSpec:
    """MESSENGER's kinds of fields, smaller: symbols 2 to 14, avatars 15 and 16, and words from 19 on."""
    fields = (
        Grid("grid", (SIZE, SIZE, 3), 0, 18, scenery_ids=(0,), avatar_ids=AVATARS),
        Field("position", (2,), -1, SIZE - 1),
        Field("inventory", (1,), 0, 18),
        Mask("action_mask", (5,)),
        Text("manual", (3, 6), 0, 39, shared=True, lifetime=EPISODE),
        *([Field("teammates", (agents - 1, 4), -1, 39)] if agents > 1 else []),
    )
    return EnvSpec(fields, agents, FixedActions(tuple("abcde")), (), 80)


def with_fixed_weights(policy: Policy, scale: float = 0.5) -> Policy:
    """Set weights that no version of torch draws otherwise; rows of padding stay 0."""
    draws = np.random.RandomState(7)
    with torch.no_grad():
        for _, parameter in sorted(policy.named_parameters()):
            parameter.copy_(torch.from_numpy(scale * draws.standard_normal(tuple(parameter.shape))))
        for module in policy.modules():
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx].zero_()
    return policy


def two_steps(agents: int = 1) -> tuple[list[dict[str, Tensor]], Tensor]:
    """Observations of two steps of two games, and their manuals [2, 3, 6]."""
    cells = [  # of each step of each game: row, column, place in the cell, symbol
        [[(0, 1, 0, 3), (2, 2, 1, 7), (4, 3, 0, 12), (3, 1, 2, 15)], [(1, 1, 0, 2), (1, 1, 1, 9), (2, 4, 2, 16)]],
        [[(0, 2, 0, 3), (2, 2, 1, 7), (4, 3, 0, 12), (2, 1, 2, 15)], [(1, 2, 0, 2), (1, 1, 1, 9), (1, 4, 2, 16)]],
    ]
    places = [[(3, 1), (2, 4)], [(2, 1), (1, 4)]]
    steps = []
    for shown, position in zip(cells, places, strict=True):
        grid = torch.zeros(2, SIZE, SIZE, 3, dtype=torch.int16)
        for game, things in enumerate(shown):
            for row, column, place, symbol in things:
                grid[game, row, column, place] = symbol
        step = {
            "grid": grid,
            "position": torch.tensor(position, dtype=torch.int16),
            "action_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 1]], dtype=torch.int8),
        }
        if agents > 1:
            step["teammates"] = torch.tensor([[[0, 4, 0, 0]], [[4, 0, 0, 0]]], dtype=torch.int16)
        steps.append(step)
    manual = torch.zeros(2, 3, 6, dtype=torch.int16)
    for game, lines in enumerate([[(20, 31, 22), (25, 33), (39, 19, 28, 30)], [(36, 21), (24, 27, 19, 35, 38), (29,)]]):
        for line, words in enumerate(lines):
            manual[game, line, : len(words)] = torch.tensor(words)
    return steps, manual


def read_by_emma(emma: Emma, manual: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values [3, WIDTH] of three sentences, whose padding has its share."""
    states = emma.reader.words.weight[F.pad(manual, (0, TOKENS - 6)).long()]  # [3, T, D]

    def summed(scorer: nn.Linear, linear: nn.Linear) -> Tensor:
        return torch.stack([linear(weigh(sentence, scorer)) for sentence in states])

    return summed(emma.key_attention.score, emma.key), summed(emma.value_attention.score, emma.value)


def told(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return (keys @ query / WIDTH**0.5).softmax(0) @ values / len(keys)


def shown_by_emma(emma: Emma, grid: Tensor, keys: Tensor, values: Tensor, agents: int) -> tuple[Tensor, Tensor]:
    """What entities and agents add to the cells of grid [H, W, K], [WIDTH, H, W] each."""
    maps = torch.zeros(2, WIDTH, SIZE, SIZE)
    for row, column in np.ndindex(SIZE, SIZE):
        ids = [int(i) for i in grid[row, column] if i]
        symbols = [emma.symbols.weight[i] for i in ids if i not in AVATARS]
        if symbols:
            maps[0, :, row, column] = told(torch.stack(symbols).mean(0), keys, values) / (1 + agents)
        for i in ids:
            if i in AVATARS:
                maps[1, :, row, column] += emma.symbols.weight[i] / (1 + agents)
    return maps[0], maps[1]


def head(layers: nn.Sequential, middle: nn.Module, features: Tensor) -> Tensor:
    return layers[4](F.leaky_relu(middle(F.leaky_relu(layers[0](features)))))


def flat(trunk: nn.Conv2d, maps: Tensor) -> Tensor:
    return F.leaky_relu(trunk(maps.unsqueeze(0))).permute(0, 2, 3, 1).flatten()


@pytest.mark.parametrize(("table", "tied"), [("separate", True), ("shared", True), ("separate", False)])
@torch.no_grad()
def test_endi_on_emma(table, tied):
    """Logits, value, predicted logits of the other, logits of self minus others on entities, and both regularisers."""
    options = {**NARROW_EMMA, "tied_heads": tied, "offset_table": table}
    policy = with_fixed_weights(make_policy("endi_dis_emma", symbols_spec(2), **options))
    assert isinstance(policy, EnDiEmma)
    emma = policy.emma
    (first, now), manual = two_steps(2)
    rows = torch.arange(2)
    _, memory = emma.find(first, rows)
    inputs = Inputs(now, policy.encode_text(manual, manual[:, 0, :0]), rows)
    output = policy.respond(inputs, memory)
    division, seen, *_ = output.seen
    guesses = policy.predict_others(inputs, seen, division.others)
    entity = division.places.is_entity
    tables = policy.queries.tables if table == "separate" else [policy.queries.tables[0]] * 3
    losses = []
    for game in range(2):
        keys, values = read_by_emma(emma, manual[game])
        steps = [step["grid"][game] for step in (first, first, now)]
        own, mate = now["position"][game].tolist(), now["teammates"][game, 0, :2].tolist()
        difference = torch.zeros(SIZE, SIZE)
        for (row, column), conv in ((own, policy.divide_self), (mate, policy.divide_others)):
            maps = torch.zeros(3, WIDTH, SIZE, SIZE)
            for frame, y, x in np.ndindex(3, SIZE, SIZE):
                ids = [int(i) for i in steps[frame][y, x] if i and i not in AVATARS]
                if ids:
                    offsets = [tables[1].weight[y - row + SIZE], tables[2].weight[x - column + SIZE]]
                    query = torch.stack([*(tables[0].weight[i] for i in ids), *offsets]).mean(0)
                    maps[frame, :, y, x] = told(query, keys, values)
            scores = F.conv2d(maps.flatten(0, 1)[None], conv.weight, conv.bias, padding=1)[0]
            difference = difference + scores[0] - scores[1]
        kept = (difference >= 0).float()
        shown = [shown_by_emma(emma, grid, keys, values, 2) for grid in steps]

        def look(trunk: nn.Conv2d, mask: Tensor, shown: list[tuple[Tensor, Tensor]] = shown) -> Tensor:
            return flat(trunk, torch.cat([entities * mask + agents for entities, agents in shown]))

        middle = [each[2] if not tied else emma.actor[2] for each in (emma.actor, emma.critic, policy.modelling[0])]
        act, foresee = look(emma.trunk, kept), look(policy.foresight, 1 - kept)
        expected = head(emma.actor, middle[0], act), head(emma.critic, middle[1], act)[0]
        allowed = now["action_mask"][game].bool()
        torch.testing.assert_close(output.logits[game][allowed], expected[0][allowed], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(output.value[game], expected[1], rtol=1e-4, atol=1e-5)
        guess = head(policy.modelling[0], middle[2], foresee)
        torch.testing.assert_close(guesses[game, 0], guess, rtol=1e-4, atol=1e-5)
        where = entity[game].view(SIZE, SIZE)
        torch.testing.assert_close(
            division.difference[game].view(SIZE, SIZE)[where], difference[where], rtol=1e-4, atol=1e-5
        )
        taken = kept[where]
        distances = []
        for row, column in (own, mate):
            far = [(abs(y - row) + abs(x - column)) / SIZE for y, x in where.nonzero().tolist()]
            distances.append(torch.tensor(far))
        losses.append(
            [
                float((taken.sum() - (1 - taken).sum()).abs()),
                float((taken * distances[0] + (1 - taken) * distances[1]).sum()),
            ]
        )
    for regularizer, each in zip(("num", "dis"), torch.tensor(losses).t(), strict=True):
        regular = make_policy(f"endi_{regularizer}_emma", symbols_spec(2), **options)
        assert isinstance(regular, EnDiEmma)
        torch.testing.assert_close(regular.auxiliary(inputs, output, {}).losses["division"], each)
