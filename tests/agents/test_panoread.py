"""panoread: what it looks at, that nothing is built in, and that every part of it learns."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.policy import Batch, Reading

OPTIONS = {"patch": 4, "turned": True}


@pytest.fixture(scope="module")
def batch():
    """Two steps of three walks."""
    vec = mg.make_vec("touchdown", 3, workers=0, **OPTIONS)
    seen = [{name: np.array(each) for name, each in vec.reset(seed=1)[0].items()}]
    seen.append({name: np.array(each) for name, each in vec.step(vec.best_actions().argmax(-1))[0].items()})
    fields = {f.name for f in vec.spec.own_fields}
    observation = {name: torch.from_numpy(np.stack([each[name][:, 0] for each in seen])) for name in fields}
    goal = torch.from_numpy(seen[0]["goal"])
    vec.close()
    return vec.spec, observation, goal


def run(policy, observation, goal, memory=None):
    encoding = policy.encode("instruction", {"goal": goal})
    steps, games = next(iter(observation.values())).shape[:2]
    index = torch.arange(games).expand(steps, games)
    restarts = torch.zeros(steps, games, dtype=torch.bool)
    restarts[0] = memory is None
    last = torch.full((steps, games), -1)
    return policy(Batch(observation, {"instruction": Reading(index=index, encoding=encoding)}, memory, restarts, last))


def test_it_sees_where_a_named_thing_is(batch):
    spec, _, _ = batch
    policy = make_policy("panoread", spec)
    bus = spec.vocabulary["bus"]
    grid = torch.full((1, 12, 32, 1), spec.vocabulary["sky"])
    for column, sector in ((16, 8), (8, 4), (24, 12), (0, 0)):
        shown = grid.clone()
        shown[0, 5, column] = bus
        seen = policy.sight(shown, torch.tensor([16]), torch.tensor([[bus, spec.vocabulary["the"], 0]]))
        assert seen[0, 0].argmax() == sector
        assert not seen[0, 1:].any()
        turned = policy.sight(shown.roll(5, 2), torch.tensor([21]), torch.tensor([[bus]]))
        torch.testing.assert_close(turned[0, 0], seen[0, 0])


def test_the_pointer_goes_from_sentence_to_sentence_and_only_forwards(batch):
    spec, observation, goal = batch
    policy = make_policy("panoread", spec)
    stops = (goal == spec.vocabulary["."]).sum(1)
    encoding = policy.encode("instruction", {"goal": goal})
    assert encoding["last"].tolist() == (stops - 1).tolist()
    belongs = encoding["names"].gt(0)
    assert (belongs.sum(2) <= 1).all()
    numbers = belongs.long().argmax(2)[0][belongs[0].any(1)]
    assert (numbers.diff() >= 0).all()
    with torch.no_grad():
        memory = run(policy, observation, goal).memory
    torch.testing.assert_close(memory.sum(2), torch.ones(2, 3))
    done = memory.cumsum(2)
    assert (done[1] <= done[0] + 1e-6).all()
    assert (done[1] < done[0]).any()
