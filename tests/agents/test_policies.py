"""What every agent's network owes its learner."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import DocumentPolicy, Inputs
from magrounding.agents.policy import PolicyOutput, TextEncoding, mask_logits
from magrounding.errors import ConfigurationError
from magrounding.play.encoded_texts import overwrite
from magrounding.spec import EnvSpec, Grid, TextChoices
from tests.agents.samples import (
    AGENTS,
    NARROW,
    READERS,
    VOCABULARY,
    Sample,
    batch_of,
    make_sample,
    make_spec,
    narrow_options,
)

ON_A_MAP = ("txt2pi", "film", "conv", "relread", "qmix", "qmix_relread", "endi_dis", "endi_dis_emma")
EVERY = (*ON_A_MAP, "sir", "emma")


def narrow(agent: str, **options) -> DocumentPolicy:
    torch.manual_seed(0)
    policy = make_policy(agent, make_spec(), **narrow_options(agent), **options)
    assert isinstance(policy, DocumentPolicy)
    return policy


def act(policy: DocumentPolicy, batch: Sample) -> PolicyOutput:
    return policy.respond(Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document))


def loss_of(output: PolicyOutput) -> Tensor:
    log_probabilities = output.logits.log_softmax(-1)
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1)
    return output.value.square().sum() - log_probabilities[:, 0].sum() - entropy.sum()


@pytest.mark.parametrize(
    ("agent", "options", "parameters"),
    [
        ("txt2pi", {}, 1_016_892),
        ("txt2pi", {"head": "code"}, 696_092),
        ("txt2pi", {"profile": "code"}, 912_872),
        ("txt2pi_no_task_attn", {}, 1_002_492),
        ("txt2pi_no_vis_attn", {}, 974_493),
        ("txt2pi_no_text_mod", {}, 742_956),
        ("conv", {"head": "code"}, 545_717),
        ("conv", {}, 866_517),
        ("conv", {"head": "code", "encoder": "gru"}, 466_517),
        ("film", {"head": "code"}, 370_157),
        ("film", {}, 690_957),
        ("film", {"head": "code", "encoder": "gru"}, 342_077),
    ],
)
def test_parameter_counts(agent, options, parameters):
    policy = make_policy(agent, make_spec(8, vocabulary_size=262), **options)
    assert sum(p.numel() for p in policy.parameters()) == parameters
    assert all(p.requires_grad for p in policy.parameters())
    assert not list(policy.buffers())


@pytest.mark.parametrize("agent", READERS)
def test_every_parameter_learns(agent):
    policy = narrow(agent)
    loss_of(act(policy, make_sample(12, 3))).backward()
    # A softmax over what a layer scores does not notice the layer's bias: its gradient is rounding, or none.
    learn = {name: p.grad for name, p in policy.named_parameters() if not name.endswith("score.bias")}
    assert [name for name, gradient in learn.items() if gradient is None or not gradient.any()] == []


@pytest.mark.parametrize("agent", READERS)
@pytest.mark.parametrize("n", [1, 6])
def test_one_set_of_weights_for_every_size(agent, n):
    policy = narrow(agent)
    for size in (6, 8, 10):
        output = act(policy, make_sample(n, min(n, 4), size))
        assert output.logits.shape == (n, 5)
        assert output.value.shape == (n,)
        assert output.logits.dtype == output.value.dtype == torch.float32
        assert torch.isfinite(output.logits).all()
    assert policy.initial_memory(n) is None


@pytest.mark.parametrize("agent", READERS)
def test_padding_changes_nothing(agent):
    policy, batch = narrow(agent), make_sample(9, 4)
    longer = batch._replace(
        manual=torch.nn.functional.pad(batch.manual, (0, 3, 0, 2)),
        goal=torch.nn.functional.pad(batch.goal, (0, 4)),
        observation=batch.observation | {"inventory": torch.nn.functional.pad(batch.observation["inventory"], (0, 3))},
    )
    with torch.no_grad():
        expected, got = act(policy, batch), act(policy, longer)
        truncated = act(policy, batch._replace(goal=batch.goal * (torch.arange(5) < 1)))
    torch.testing.assert_close(got.logits, expected.logits, rtol=0, atol=1e-6)
    torch.testing.assert_close(got.value, expected.value, rtol=0, atol=1e-6)
    assert not torch.allclose(truncated.value, expected.value, rtol=0, atol=1e-6)  # words do change something


@pytest.mark.parametrize("agent", READERS)
def test_reading_once_is_reading_for_each_observation(agent):
    policy, batch = narrow(agent), make_sample(50, 3)
    each = batch._replace(
        manual=batch.manual[batch.document], goal=batch.goal[batch.document], document=torch.arange(50)
    )
    with torch.no_grad():
        expected, got = act(policy, each), act(policy, batch)
    torch.testing.assert_close(got.logits, expected.logits, rtol=0, atol=1e-6)
    torch.testing.assert_close(got.value, expected.value, rtol=0, atol=1e-6)


@pytest.mark.parametrize("agent", READERS)
def test_observations_do_not_mix(agent):
    policy, batch = narrow(agent), make_sample(8, 3)
    with torch.no_grad():
        text = policy.encode_text(batch.manual, batch.goal)
        together = policy.respond(Inputs(batch.observation, text, batch.document))
        for n in range(8):
            one = {name: tensor[n : n + 1] for name, tensor in batch.observation.items()}
            alone = policy.respond(Inputs(one, text, batch.document[n : n + 1]))
            torch.testing.assert_close(alone.logits[0], together.logits[n], rtol=0, atol=1e-6)


@pytest.mark.parametrize("agent", READERS)
def test_masked_actions_are_impossible_and_harmless(agent):
    policy, batch = narrow(agent), make_sample(12, 3)
    batch.observation["action_mask"][:3] = torch.tensor([1, 0, 0, 0, 0], dtype=torch.int8)
    output = act(policy, batch)
    allowed = batch.observation["action_mask"].bool()
    probabilities = output.logits.softmax(-1)
    assert (probabilities[~allowed] == 0).all()
    assert (probabilities[allowed] > 0).all()
    assert allowed.gather(1, torch.multinomial(probabilities, 500, replacement=True)).all()
    loss = loss_of(output)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in policy.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_mask_logits_stays_finite(dtype):
    logits = mask_logits(torch.zeros(1, 3, dtype=dtype), torch.tensor([[1, 0, 1]], dtype=torch.int8))
    assert logits.dtype == dtype
    assert torch.isfinite(logits).all()
    torch.testing.assert_close(logits.softmax(-1), torch.tensor([[0.5, 0, 0.5]], dtype=dtype), rtol=0, atol=0)


@pytest.mark.parametrize("agent", READERS)
def test_the_padding_word_stays_zero(agent):
    policy = narrow(agent)
    ((name, table),) = ((k, p) for k, p in policy.named_parameters() if k.endswith("words.weight"))
    assert table.shape[0] == VOCABULARY, name
    before = table.detach().clone()
    optimizer = torch.optim.RMSprop(policy.parameters(), 0.005, alpha=0.99, eps=0.01)
    loss_of(act(policy, make_sample(12, 3))).backward()
    optimizer.step()
    assert not table[0].any()
    assert (table[6:] != before[6:]).any(1).float().mean() > 0.9


@pytest.mark.parametrize("agent", READERS)
def test_bfloat16(agent):
    policy, batch = narrow(agent), make_sample(40, 3)
    expected = act(policy, batch)
    with torch.autocast("cpu", torch.bfloat16):
        output = act(policy, batch)
    assert output.logits.dtype == output.value.dtype == torch.float32
    allowed = batch.observation["action_mask"].bool()
    torch.testing.assert_close(output.logits[allowed], expected.logits[allowed], rtol=0, atol=0.02)
    assert not torch.equal(output.value, expected.value)  # it did compute in less
    loss_of(output).backward()
    assert all(p.grad.dtype == torch.float32 and torch.isfinite(p.grad).all() for p in policy.parameters())


@pytest.mark.parametrize("agent", READERS)
def test_learns_sixteen_transitions_by_heart(agent):
    torch.manual_seed(0)
    width = {"width": 32} if agent.startswith("sir") else {"head_width": 32}
    policy = make_policy(agent, make_spec(), **(narrow_options(agent) | {"channels": [8, 16, 16]} | width))
    batch = make_sample(16, 4, seed=1)
    mask = batch.observation["action_mask"].bool()
    action = torch.rand(16, 5, generator=torch.Generator().manual_seed(2)).where(mask, torch.tensor(-1.0)).argmax(1)
    assert len(action.unique()) > 3
    optimizer = torch.optim.Adam(policy.parameters(), 0.005)
    accuracy = []
    while len(accuracy) < 500 and max(accuracy, default=0) <= 0.95:
        logits = act(policy, batch).logits
        accuracy.append((logits.argmax(1) == action).float().mean().item())
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, action).backward()
        optimizer.step()
    assert accuracy[0] < 0.7
    assert accuracy[-1] > 0.95


def test_overwriting_documents_pads_the_shorter():
    policy = narrow("txt2pi")
    short, long = make_sample(3, 3), make_sample(2, 2, seed=5)
    short.manual[:, 1:] = 0
    kept = policy.encode_text(short.manual, short.goal)
    new = policy.encode_text(long.manual, long.goal)
    assert kept["states"].shape[1] < new["states"].shape[1]
    every = Sample(
        make_sample(3, 3).observation,
        torch.stack((long.manual[1], short.manual[1], long.manual[0])),
        torch.stack((long.goal[1], short.goal[1], long.goal[0])),
        torch.arange(3),
    )

    def detached(text: TextEncoding) -> TextEncoding:
        return {name: tensor.detach().clone() for name, tensor in text.items()}

    with torch.no_grad():
        expected = act(policy, every).logits
        text = overwrite(detached(kept), torch.tensor([2, 0]), detached(new), 3)
        got = policy.respond(Inputs(every.observation, text, every.document)).logits
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)
        # And short ones over long ones, which are not shortened.
        short_again = overwrite(text, torch.tensor([0, 1, 2]), detached(kept), 3)
        got = policy.respond(Inputs(every.observation, short_again, every.document)).logits
        torch.testing.assert_close(
            got, act(policy, every._replace(manual=short.manual, goal=short.goal)).logits, rtol=0, atol=1e-6
        )


def test_options_are_json_values():
    options = json.loads(json.dumps(NARROW))
    policy = make_policy("txt2pi", make_spec(), **options)
    assert policy.config.channels == (6, 8, 8, 10)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chanels": [8]}, "unknown option of .*'chanels'; choose from: channels, embedding"),
        ({"channels": []}, r"channels of \w+Config takes a list of length >= 1, got"),
        ({"channels": 8}, r"channels of \w+Config takes a list, got 8"),
        ({"channels": [8, 0]}, r"channels of \w+Config takes an integer >= 1 at \[1\], got \[8, 0\]"),
        ({"embedding": 2.5}, r"embedding of \w+Config takes an integer"),
        ({"embedding": True}, r"embedding of \w+Config takes an integer"),
        ({"goal_hidden": -1}, r"goal_hidden of \w+Config takes an integer >= 1, got -1"),
        ({"head": "big"}, "unknown head 'big'; choose from: paper, code"),
    ],
)
def test_bad_options(agent, options, message):
    with pytest.raises(ConfigurationError, match=message):
        make_policy(agent, make_spec(), **options)


def without(name: str) -> EnvSpec:
    spec = make_spec()
    return replace(spec, fields=tuple(field for field in spec.fields if field.name != name))


def turning() -> EnvSpec:
    fields = (replace(each, egocentric=True) if isinstance(each, Grid) else each for each in make_spec().fields)
    return replace(make_spec(), fields=tuple(fields))


@pytest.mark.parametrize(
    ("agent", "spec", "message"),
    [
        *((agent, turning(), "turns with the agent, .* is made for one that lies still") for agent in ON_A_MAP),
        *((agent, without("position"), "looks at position, which this world does not show") for agent in ON_A_MAP),
        *(
            (agent, without("grid"), "looks at grid, which this world does not show")
            for agent in EVERY
            if agent != "sir"
        ),
        *((agent, without("action_mask"), "looks at action_mask, which this") for agent in EVERY),
        *(
            (agent, replace(make_spec(), actions=TextChoices(5, 4)), "from FixedActions, this world offers TextChoices")
            for agent in EVERY
            if agent != "sir"
        ),
        *((f"endi_dis{base}", without("teammates"), "looks at teammates") for base in ("", "_emma", "_relread")),
    ],
)
def test_worlds_that_a_network_is_not_made_for(agent, spec, message):
    with pytest.raises(ConfigurationError, match=message) as error:
        make_policy(agent, spec)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("agent", sorted(set(EVERY) - set(ON_A_MAP)))
def test_who_needs_no_place_takes_maps_that_turn(agent):
    policy, batch = make_policy(agent, turning()), make_sample(4, 2)
    begins = torch.ones(1, 4, dtype=torch.bool)
    one = {name: array.unsqueeze(0) for name, array in batch.observation.items()}
    manual, goal = (text.index_select(0, batch.document) for text in (batch.manual, batch.goal))
    assert policy(batch_of(policy, one, manual, goal, begins)).value.isfinite().all()


@pytest.mark.parametrize(
    ("agent", "options", "message"),
    [
        ("txt3pi", {}, "unknown agent 'txt3pi'; choose from: .*txt2pi"),
        ("txt2pi", {"profile": "paperback"}, "unknown profile 'paperback'; choose from: paper, code"),
        ("txt2pi", {"task_attention": 1}, "task_attention of Txt2PiConfig takes True or False, got 1"),
        ("txt2pi_no_task_attn", {"task_attention": True}, "itself sets task_attention to False"),
        ("sir_state", {"state": False}, "itself sets state to True"),
        ("film", {"encoder": "rnn"}, "unknown encoder 'rnn'; choose from: lstm, gru"),
    ],
)
def test_bad_agents(agent, options, message):
    with pytest.raises(ConfigurationError, match=message):
        make_policy(agent, make_spec(), **options)
