"""What networks tell of the statements that they rely on is their own attention, computed here one thing at a time."""

import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.modules import masked_softmax
from magrounding.agents.policy import ATTENTION, WORD_ATTENTION
from tests.agents.samples import batch_of, documents_of, make_sample, make_spec, narrow_options, seen_by

TXT2PI = ("txt2pi", "txt2pi_no_task_attn", "txt2pi_no_vis_attn")


def games(env, agent, rows=6, **options):
    """A network, observations of the first agent of some games, and the two texts of each."""
    vec = mg.make_vec(env, rows, copy=True, **options)
    obs, _ = vec.reset(seed=0)
    torch.manual_seed(0)
    return make_policy(agent, vec.spec).eval(), seen_by(0, obs, vec.spec), documents_of(obs)


def aux(policy, observation, texts, name=ATTENTION):
    """What a network reports [N, …], in a step in which each game reads a text of its own."""
    restarts = torch.ones(1, len(texts[0]), dtype=torch.bool)
    batch = batch_of(policy, {name: each[None] for name, each in observation.items()}, *texts, restarts)
    with torch.no_grad():
        return policy(batch).aux[name]()[0]


@pytest.mark.parametrize(
    "agent",
    [*TXT2PI, "sir", "sir_state", "emma", "relread", "qmix_relread", "endi_dis", "endi_dis_emma", "endi_dis_relread"],
)
def test_shares_of_what_is_written_add_up_to_one(agent):
    torch.manual_seed(0)
    options = narrow_options(agent) if "txt2pi" in agent or "sir" in agent or agent == "endi_dis" else {}
    policy, sample = make_policy(agent, make_spec(), **options), make_sample(8, 8)
    manual = sample.manual.clone()
    manual[:, 2] = 0
    found = aux(policy, sample.observation, (manual, sample.goal))
    assert found.shape == (8, 4)
    assert (found >= 0).all()
    assert (found[:, 2] == 0).all()
    torch.testing.assert_close(found.sum(1), torch.ones(8))


@pytest.mark.parametrize("agent", [*TXT2PI, "sir", "endi_dis"])
def test_each_query_shares_one_among_the_words_and_the_terminator(agent):
    torch.manual_seed(0)
    policy, sample = make_policy(agent, make_spec(), **narrow_options(agent)), make_sample(6, 6)
    manual = sample.manual.clone()
    manual[3, 1:] = 0  # fewer words than the others have
    found = aux(policy, sample.observation, (manual, sample.goal), WORD_ATTENTION)
    layers = 0 if agent == "txt2pi_no_vis_attn" else len(policy.config.channels)
    asks = agent in ("txt2pi", "txt2pi_no_vis_attn", "endi_dis")
    assert found.shape[:2] == (6, 1 + layers)
    torch.testing.assert_close(found.sum(2), torch.tensor([float(asks), *[1.0] * layers]).expand(6, -1))
    assert (found[3, :, 1 + int((manual[3] != 0).sum()) :] == 0).all()


def test_emma_tells_the_attention_of_what_is_in_sight():
    policy, observation, texts = games("messenger", "emma", stage="s2")
    with torch.no_grad():
        policy.symbols.weight.mul_(20)
        text = policy.encode_text(*texts)
    for b, share in enumerate(aux(policy, observation, texts)):
        seen = [int(word) for word in observation["grid"][b].flatten() if policy.occupant[word] & ~policy.avatar[word]]
        scores = [text["key"][b] @ policy.symbols.weight[word] / policy.config.width**0.5 for word in seen]
        attention = [masked_softmax(score, text["spoken"][b]) for score in scores]
        torch.testing.assert_close(share, torch.stack(attention).mean(0))


def test_relread_relies_on_statements_that_share_a_word_with_what_is_in_sight():
    policy, observation, texts = games("rtfm", "relread", task="simple", size=6)
    things, shares = policy.find(observation), aux(policy, observation, texts)
    for b, share in enumerate(shares):
        seen = {int(word) for word in things.words[b][:-1][things.exists[b]].flatten()} - {0}
        related = torch.tensor([bool(seen & set(line.tolist())) for line in texts[0][b]])
        assert share[related].min() > share[~related].max()


def test_txt2pi_tells_the_mean_of_all_its_attention():
    sample, asked = make_sample(5, 5), []
    policy = make_policy("txt2pi", make_spec(), **narrow_options("txt2pi"), initial_query="max_project")
    for query in (policy.grounding.initial, *(layer.query for layer in policy.grounding.layers)):
        if query is not None:
            query.register_forward_hook(lambda module, given, made: asked.append(made))
    found = aux(policy, sample.observation, (sample.manual, sample.goal))
    assert len(asked) == len(policy.config.channels)
    text = policy.encode_text(sample.manual, sample.goal)
    for b, manual in enumerate(sample.manual):
        heard = [(text["states"][b] @ each[b]).masked_fill(~text["mask"][b], -torch.inf).softmax(0) for each in asked]
        words = [s for s, statement in enumerate(manual) for word in statement if word]
        share, attention = torch.zeros(4), torch.stack([*heard, text["asked"][b]]).mean(0)
        for statement, weight in zip(words, attention, strict=False):  # behind the words stands a terminator
            share[statement] += weight.detach()
        torch.testing.assert_close(found[b], share / share.sum())
