"""Networks of the papers, number by number: outputs for weights and inputs that a frozen stream of numbers gives.

The numbers are this package's own. What the networks compute by definition is in the tests of each; here nothing may
move that would need a definition to notice: the order of parts, padding, the place of a skip, what a normalisation
takes together. `python -m tests.agents.test_golden` writes the numbers anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import Batch, Reading
from magrounding.agents.qmix import make_mixer
from magrounding.single.babyai import BabyAI
from magrounding.single.babyai.words import CODE_TO_WORDS, mission_ids
from magrounding.spec import CHOICES
from tests.agents.samples import make_spec

TXT2PI = ("txt2pi", {}), ("txt2pi", {"profile": "code"}), ("film", {}), ("conv", {})
MISSIONS = ("go to the red ball", "put a blue key next to the door")
BABYAI = ("babyai_small", "babyai_large")
GOLDEN = Path(__file__).with_name("golden_outputs.json")


def settle(network: nn.Module, numbers: np.random.RandomState) -> nn.Module:
    """Draw every parameter from a normal, in the order of names: deviation 1 / √inputs of matrices, .1 of vectors."""
    with torch.no_grad():
        for _, parameter in sorted(network.named_parameters()):
            inputs = parameter[0].numel() if parameter.dim() > 1 else 100
            drawn = numbers.standard_normal(tuple(parameter.shape)) / inputs**0.5
            parameter.copy_(torch.from_numpy(drawn))
        for module in network.modules():
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0
    return network


def numbers_of(*outputs: Tensor) -> list[float]:
    """All outputs in a row; masked logits are 0."""
    flat = torch.cat([each.detach().float().flatten() for each in outputs])
    return torch.where(flat < -1e9, 0.0, flat).tolist()


def words(numbers: np.random.RandomState, *shape: int, first: int = 6, last: int = 39) -> Tensor:
    return torch.from_numpy(numbers.randint(first, last + 1, shape).astype(np.int16))


def reads_a_map(agent: str, options: dict, learning: bool = False) -> list[float]:
    """Two observations of one document: logits [2, 5], values [2]."""
    numbers = np.random.RandomState(0)
    policy = settle(make_policy(agent, make_spec(6), **options), numbers)
    manual, goal = words(numbers, 1, 4, 6), words(numbers, 1, 5)
    manual[0, 1, 3:] = goal[0, 4:] = 0
    observation = {
        "grid": torch.where(torch.from_numpy(numbers.rand(2, 6, 6, 1) < 0.2), words(numbers, 2, 6, 6, 4), 1),
        "position": torch.tensor([[1, 4], [3, 2]], dtype=torch.int16),
        "inventory": torch.tensor([[0, 0], [9, 17]], dtype=torch.int16),
        "action_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 1, 1]], dtype=torch.int8),
    }
    with torch.set_grad_enabled(learning):
        text = policy.encode_text(manual, goal)
        output = policy.respond(Inputs(observation, text, torch.zeros(2, dtype=torch.int64)))
    return numbers_of(output.logits, output.value)


def moves_in_a_view(agent: str, training: bool) -> list[float]:
    """Three steps of two episodes, of which one begins anew: logits [3, 2, 7], values [3, 2]."""
    numbers = np.random.RandomState(0)
    policy = settle(make_policy(agent, BabyAI().describe()), numbers).train(training)
    grid = torch.from_numpy(CODE_TO_WORDS[numbers.randint(0, len(CODE_TO_WORDS), (3, 2, 7, 7))])
    goal = torch.from_numpy(np.stack([mission_ids(each) for each in MISSIONS]))
    restarts = torch.tensor([[True, True], [False, False], [False, True]])
    with torch.no_grad():
        reading = Reading(policy.encode("mission", {"goal": goal}), torch.tensor([[0, 1]] * 3))
        seen = {"grid": grid, "action_mask": torch.ones(3, 2, 7, dtype=torch.int8)}
        output = policy(Batch(seen, {"mission": reading}, None, restarts, torch.zeros(3, 2, dtype=torch.int64)))
    return numbers_of(output.logits, output.value)


def values_of_a_team(hypernetwork: int) -> list[float]:
    """Two agents, two games, two steps: Q [8, 5] of agents, Q_tot [2]."""
    spec, numbers = mg.ENVS["ma_rtfm"].describe(stage="s1", agents=2), np.random.RandomState(0)
    policy, layout = settle(make_policy("qmix", spec), numbers), spec.state_layout()
    mixer = settle(make_mixer("monotonic", spec, layout, 32, hypernetwork), numbers)
    last, (height, width, _) = spec.vocabulary_size - 1, spec.grid.shape
    rows = {
        "grid": words(numbers, 8, *spec.grid.shape, first=0, last=last),
        "position": torch.from_numpy(numbers.randint(0, min(height, width), (8, 2)).astype(np.int16)),
        "inventory": words(numbers, 8, *spec["inventory"].shape, first=0, last=last),
        "action_mask": torch.ones(8, 5, dtype=torch.int8),
    }
    before = torch.from_numpy(np.eye(5, dtype=np.float32)[numbers.randint(0, 5, 8)])
    before[:4] = 0  # the first steps
    state = torch.zeros(2, spec.state_size, dtype=torch.int16)
    state[:, layout["grid"][0]] = words(numbers, 2, height * width * spec.grid.shape[2], first=0, last=last)
    state[:, layout["agents"][0].start] = 3
    with torch.no_grad():
        real, hidden = torch.ones(2, 4, dtype=torch.bool), policy.initial_hidden(4)
        who = torch.eye(2).repeat(4, 1)
        q, _ = policy.evaluate(Inputs(rows, {}, torch.zeros(8, dtype=torch.int64)), who, before, hidden, real)
        total = mixer(q.amax(1)[:4].view(2, 2), state)
    return numbers_of(q, total)


def values_of_choices() -> list[float]:
    """One observation of ScienceWorld with four actions on offer: Q [4]."""
    spec, numbers = mg.ENVS["scienceworld"].describe(), np.random.RandomState(0)
    policy = settle(make_policy("drrn", spec), numbers)
    texts = {}
    for name, fields in policy.reads.items():
        rows = {field: words(numbers, 4 if name == CHOICES else 1, 7, first=1, last=400) for field in fields}
        index = torch.arange(4).view(1, 1, 4) if name == CHOICES else torch.zeros(1, 1, dtype=torch.int64)
        with torch.no_grad():
            texts[name] = Reading(policy.encode(name, rows), index)
    nothing = torch.zeros(1, 1, dtype=torch.int64)
    with torch.no_grad():
        mask = {"action_mask": torch.ones(1, 1, 4, dtype=torch.int8)}
        return numbers_of(policy(Batch(mask, texts, None, nothing.bool(), nothing)).logits)


CASES = {
    **{f"{agent} {options.get('profile', 'paper')}": (reads_a_map, agent, options) for agent, options in TXT2PI},
    "txt2pi code, learning": (reads_a_map, "txt2pi", {"profile": "code"}, True),
    **{
        f"{agent} {'training' if on else 'evaluation'}": (moves_in_a_view, agent, on)
        for agent in BABYAI
        for on in (False, True)
    },
    **{f"qmix, hypernetworks of {units}": (values_of_a_team, units) for units in (64, 0)},
    "drrn": (values_of_choices,),
}


@pytest.mark.extension("lge", only="drrn")
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_as_they_were(name):
    make, *arguments = CASES[name]
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert golden.keys() == CASES.keys()
    np.testing.assert_allclose(make(*arguments), golden[name], rtol=1e-3, atol=2e-4)


if __name__ == "__main__":
    found = {name: [round(each, 5) for each in make(*arguments)] for name, (make, *arguments) in CASES.items()}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in found.items())
    GOLDEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
