"""The compiled kernels of relread compute what its lines of torch do, gradients included."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.relread import kernels
from magrounding.agents.relread.manual_reader import shared_phrases


def observe(steps=4, row_count=8, **options):
    """Observations of agent 0 at the start of games and some random steps later, and the texts."""
    vec = mg.make_vec("ma_rtfm", row_count, copy=True, max_cycles=80, **options)
    rng = np.random.default_rng(0)
    first, _ = vec.reset(seed=0)
    last = first
    for _ in range(steps):
        last, *_ = vec.step(rng.integers(0, 5, (row_count, vec.num_agents)))
    texts = {k: torch.from_numpy(np.concatenate([first[k], last[k]])) for k in ("manual", "goal")}
    own = [k for k in first if k not in texts]
    mine = {k: torch.from_numpy(np.concatenate([first[k][:, 0], last[k][:, 0]])) for k in own}
    return vec.spec, mine, texts


def everything(policy, observation, texts):
    """Outputs of a policy, and the gradients of a sum that weighs each of them differently."""
    document = torch.arange(len(texts["manual"])).flip(0)
    output = policy.respond(Inputs(observation, policy.encode_text(**texts), document))
    allowed = output.logits[observation["action_mask"].bool()]
    weights = torch.linspace(-1, 1, len(allowed), dtype=allowed.dtype)
    policy.zero_grad()
    ((allowed * weights).sum() + output.value.square().sum()).backward()
    return allowed.detach(), output.value.detach(), {n: p.grad.clone() for n, p in policy.named_parameters()}


def fresh(spec, **options):
    torch.manual_seed(0)
    policy = make_policy("relread", spec, **options)
    with torch.no_grad():
        policy.policy.weight.normal_()  # as made it is nearly indifferent, which would hide differences
    return policy


def empty(observation):
    """Nothing in sight in every second row: no entities, and the mates dead."""
    bare = {k: v.clone() for k, v in observation.items()}
    bare["grid"][::2] = 0
    bare["teammates"][::2, :, :2] = -1
    bare["teammates"][::2, :, 2:] = 0
    return bare


def compare(monkeypatch, policy, observation, texts):
    """Kernels in single precision against torch in double precision; torch in single errs as much (measured)."""
    calls = []
    monkeypatch.setattr(kernels, "suits", lambda *_: calls.append(1) or True)
    fast = everything(policy, observation, texts)
    assert len(calls) == 5  # things; their words; bonds; places; the map
    monkeypatch.setattr(kernels, "suits", lambda *_: False)
    policy.feel.register_forward_pre_hook(lambda _, inputs: (inputs[0].double(),))
    exact = everything(policy.double(), observation, texts)
    for actual, expected in zip(fast[:2], exact[:2], strict=True):
        assert (actual - expected).abs().max() < 3e-6 * expected.abs().max()
    whole = sum(gradient.square().sum() for gradient in exact[2].values()) ** 0.5
    for name, expected in exact[2].items():
        assert expected.any(), name
        error = (fast[2][name] - expected).norm()
        assert error < 5e-5 * expected.norm() + 1e-6 * whole, (name, error / expected.norm(), error / whole)


@pytest.mark.parametrize(
    "options",
    [
        {"stage": "s1", "agents": 1},
        {"stage": "s1", "agents": 2},
        {"stage": "s5", "agents": 2, "sight": 2},
        {"stage": "s5", "agents": 3, "size": 10},
        {"stage": "s5", "agents": 3, "occupants": 1},
    ],
    ids=str,
)
def test_kernels_compute_what_torch_does(monkeypatch, options):
    spec, observation, texts = observe(**options)
    compare(monkeypatch, fresh(spec), observation, texts)


def test_so_they_do_of_other_widths_and_where_nothing_is_in_sight(monkeypatch):
    spec, observation, texts = observe(stage="s5", agents=2)
    compare(monkeypatch, fresh(spec, pair_hidden=7, hidden=10, features=5, reach=2), empty(observation), texts)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int64])
@pytest.mark.parametrize("shape", [(40, 5, 9, 6), (3, 1, 2, 2), (3, 4, 1, 5), (3, 4, 5, 1), (2, 0, 4, 3), (0, 2, 4, 3)])
def test_phrases_that_a_goal_shares_with_statements(monkeypatch, shape, dtype):
    u, s, length, g = shape
    generator = torch.Generator().manual_seed(0)
    manual = torch.randint(0, 4, (u, s, length), generator=generator).to(dtype)
    goal = torch.randint(0, 4, (u, g), generator=generator).to(dtype)
    found = shared_phrases(manual, goal)
    monkeypatch.setattr(kernels, "suits", lambda *_: False)
    assert torch.equal(found, shared_phrases(manual, goal))
    for i, j, k in np.ndindex(*found.shape):
        pairs = set(zip(*(manual[i, j, start : length - 1 + start].tolist() for start in (0, 1)), strict=True))
        beside = [tuple(goal[i, at : at + 2].tolist()) for at in (k - 1, k) if 0 <= at < g - 1]
        assert found[i, j, k] == any(pair in pairs and 0 not in pair for pair in beside)


def test_other_precisions_are_left_to_torch():
    spec, observation, texts = observe(stage="s5", agents=2)
    policy = fresh(spec)
    single = everything(policy, observation, texts)
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels.suits(torch.zeros(1))
        half = everything(policy, observation, texts)
    torch.testing.assert_close(half[1], single[1], rtol=0.1, atol=0.1)
    assert not kernels.suits(torch.zeros(1, dtype=torch.float64))
    assert not kernels.suits(torch.zeros(1, device="meta"))
