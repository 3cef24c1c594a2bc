"""QMIX's networks: what agents remember, who they are, and that the team's value is monotonic in theirs."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.qmix import PLAY_EPSILON, MonotonicMixer, StateEncoder, epsilon_greedy
from tests.agents.samples import batch_of, documents_of, seen_by

SMALL = {"qmix": {"maps": 4, "hidden": 8, "embedding": 4}, "qmix_relread": {"hidden": 16, "top": 16}}
AGENTS = tuple(SMALL)


@pytest.fixture(scope="module")
def vec():
    return mg.make_vec("ma_rtfm", 6, stage="s1", agents=2)


def network(agent, vec, **options):
    return build_policy(agent, vec.spec, {**SMALL[agent], **options}, seed=0)


def played(vec, steps=7):
    """The first agent's observations [T, N, …], the texts and the actions [T, N] of games that nobody wins."""
    shown, _ = vec.reset(seed=3)
    rng, seen, actions, texts = np.random.default_rng(0), [], [], documents_of(shown)
    for _ in range(steps):
        seen.append(seen_by(0, shown, vec.spec))
        actions.append(rng.integers(5, size=(vec.num_envs, 2)))
        shown, *_ = vec.step(actions[-1])
    stacked = {name: torch.stack([step[name] for step in seen]) for name in seen[0]}
    return stacked, texts, torch.from_numpy(np.stack(actions))[..., 0]


def unrolled(policy, observation, texts, actions, real=None, hidden=None, before=None):
    """Q of the real steps (all, by default) of agent 0, in one go, and the hidden state; `before`: what it did last."""
    T, N = actions.shape
    real = torch.ones(T, N, dtype=torch.bool) if real is None else real
    last = torch.nn.functional.one_hot(actions, 5).float()
    first = torch.zeros(N, 5) if before is None else torch.nn.functional.one_hot(before, 5).float()
    last = torch.cat((first[None], last[:-1]))
    rows = {name: array[real] for name, array in observation.items()}
    hidden = policy.initial_hidden(N) if hidden is None else hidden
    document = torch.arange(N).expand(T, N)[real]
    who = torch.eye(2)[:1].expand(len(document), 2)
    text = policy.encode("document", dict(zip(("manual", "goal"), texts, strict=True)))
    return policy.evaluate(Inputs(rows, text, document), who, last[real], hidden, real)


def test_only_the_reader_reads(vec):
    observation, (manual, goal), actions = played(vec)
    for agent in AGENTS:
        policy = network(agent, vec)
        torch.nn.init.normal_(dict(policy.named_parameters()).get("reader.policy.weight", torch.empty(1)))
        with torch.no_grad():
            q, _ = unrolled(policy, observation, (manual, goal), actions)
            other, _ = unrolled(policy, observation, (manual.roll(1, 0), goal.roll(1, 0)), actions)
        assert torch.equal(q, other) == (agent == "qmix")


@pytest.mark.parametrize("agent", AGENTS)
def test_agents_share_weights_and_know_who_they_are(vec, agent):
    policy = network(agent, vec)
    first, second = (policy.as_agent(i) for i in range(2))
    for p, q, r in zip(policy.parameters(), first.parameters(), second.parameters(), strict=True):
        assert p is q is r
    loaded = network(agent, vec)
    loaded.load_state_dict(second.state_dict())
    assert loaded.who.tolist() == [0, 1]
    observation, texts, _ = played(vec, 1)
    start = torch.ones(1, 6, dtype=torch.bool)
    with torch.no_grad():
        values = [p(batch_of(p, observation, *texts, start)).value for p in (first, second, loaded)]
    assert not torch.equal(values[0], values[1])
    assert torch.equal(values[1], values[2])


def test_who_looks_around_sees_the_same_square_on_a_larger_map(vec):
    policy = network("qmix", vec, reach=3)
    observation, texts, actions = played(vec, 1)
    with torch.no_grad():
        q, _ = unrolled(policy, observation, texts, actions)
        observation["grid"] = torch.nn.functional.pad(observation["grid"], (0, 0, 1, 4, 3, 0))
        observation["position"] = observation["position"] + torch.tensor([3, 1])
        larger, _ = unrolled(policy, observation, texts, actions)
    assert torch.equal(q, larger)
    observation["grid"][:, :, 0] = 7  # too far away for everybody
    with torch.no_grad():
        further, _ = unrolled(policy, observation, texts, actions)
        observation["grid"][:, :, 3:] = 7
        nearer, _ = unrolled(policy, observation, texts, actions)
    assert torch.equal(q, further)
    assert not torch.isclose(q, nearer).all(1).any()


def test_sampled_play_is_epsilon_greedy():
    q = torch.tensor([[1.0, 3.0, 2.0, 9.0]])
    mask = torch.tensor([[1, 1, 1, 0]], dtype=torch.int8)
    for epsilon, chances in ((0.3, [0.1, 0.8, 0.1, 0]), (1.0, [1 / 3] * 3 + [0]), (0.0, [0.0, 1.0, 0.0, 0.0])):
        logits = epsilon_greedy(q, mask, epsilon)
        torch.testing.assert_close(logits.softmax(-1), torch.tensor([chances]))
        assert torch.isfinite(logits).all()
        assert epsilon == 1 or logits.argmax() == 1
    assert 0 < PLAY_EPSILON < 0.1


def test_one_network_is_for_one_size_of_map(vec):
    assert network("qmix", vec).as_agent(0).grid_shape == vec.spec.grid.shape == (8, 8, 4)


@pytest.fixture(scope="module", params=["ma_rtfm", "ma_messenger"])
def states(request):
    """Spec, layout and the states [N, S] of games some steps after their start."""
    vec = mg.make_vec(request.param, 20, stage="s1", agents=2)
    vec.reset(seed=1)
    vec.step(np.random.default_rng(0).integers(5, size=(20, 2)))
    return vec.spec, vec.spec.state_layout(), torch.from_numpy(vec.state().copy())


@pytest.mark.parametrize(("options", "count"), [({}, 37_185), ({"hypernetwork": 0}, 25_793)])
def test_the_mixer_has_the_published_size(states, options, count):
    """PyMARL's, with hypernetworks of two layers (64) for both weights, and the paper's with one."""
    spec, layout, _ = states
    mixer = MonotonicMixer(StateEncoder(spec, layout, maps=4), 2, **options)
    assert sum(p.numel() for name, p in mixer.named_parameters() if not name.startswith("encoder.")) == count


def test_the_mixer_is_its_equations(states):
    """Q_tot = ELU(q |W1| + b1) · |W2| + b2 (Rashid et al. 2018, sec. 4), and each part is a network of the state."""
    spec, layout, state = states
    torch.manual_seed(0)
    mixer, q = MonotonicMixer(StateEncoder(spec, layout, maps=4), 2), torch.randn(len(state), 2)
    with torch.no_grad():
        total = mixer(q, state)
        for k in range(3):
            s = mixer.encoder(state[k : k + 1])[0]
            (one, _, two), (three, _, four) = mixer.first_weight, mixer.second_weight
            first = (two.weight @ (one.weight @ s + one.bias).relu() + two.bias).abs().view(2, 32)
            second = (four.weight @ (three.weight @ s + three.bias).relu() + four.bias).abs()
            hidden = torch.nn.functional.elu(q[k] @ first + mixer.first_bias(s))
            torch.testing.assert_close(total[k], hidden @ second + mixer.second_bias(s)[0])


def test_the_teams_value_never_falls_where_an_agents_rises(states):
    spec, layout, state = states
    for seed in range(5):
        torch.manual_seed(seed)
        mixer = MonotonicMixer(StateEncoder(spec, layout, maps=4), 2)
        q = (10 * torch.randn(len(state), 2)).requires_grad_()
        (slope,) = torch.autograd.grad(mixer(q, state).sum(), q)
        assert (slope >= 0).all()
        assert slope.mean() > 0
        assert slope.std() > 0  # and it is no sum


def test_the_state_tells_where_agents_are_and_what_they_hold(states):
    spec, layout, state = states
    torch.manual_seed(0)
    encoder = StateEncoder(spec, layout, maps=4)
    first = layout["agents"][0].start

    def told(place, number):
        changed = state.clone()
        changed[:, first + place] = number
        with torch.no_grad():
            return encoder(changed)

    with torch.no_grad():
        before = encoder(state)
    assert before.shape == (20, encoder.width) == (20, 160)
    for place, number in ((0, -1), (1, 4), (3, 1)):
        assert not torch.equal(told(place, number), before)
    torch.testing.assert_close(told(3, 1)[:, :128], before[:, :128])
