"""EnDi on each grounding module: sizes, masks, gradients, what hides what."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import magrounding as mg
from magrounding.agents.building import build_policy, make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import OTHERS
from magrounding.endi.on_emma import EnDiEmma
from magrounding.endi.on_txt2pi import EnDiTxt2Pi
from tests.agents.samples import batch_of, make_spec
from tests.endi.games import NETWORKS, act, learn_beside, network, scene

AGENTS = tuple(NETWORKS)


def parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_parameters_on_txt2pi():
    spec = make_spec(8, vocabulary_size=262)
    assert parameters(make_policy("endi_dis", spec)) == 709_295
    assert parameters(make_policy("endi_num", replace(spec, num_agents=4))) == 709_295 + 2 * 325
    assert parameters(make_policy("endi_sup", spec)) == 709_295 - 325


@pytest.mark.parametrize(
    ("table", "tied", "count"),
    [
        ("separate", True, 2_848_271),
        ("shared", True, 2_838_543),
        ("separate", False, 2_881_295),
        ("shared", False, 2_871_567),
    ],
)
def test_parameters_on_emma(table, tied, count):
    """With the paper's reader, whose states are 768 wide and which is not trained."""
    spec = mg.make_vec("ma_messenger", 1, stage="s2", agents=2).spec
    policy = make_policy("endi_dis_emma", spec, embedding=768, offset_table=table, tied_heads=tied)
    assert isinstance(policy, EnDiEmma)
    assert parameters(policy) - parameters(policy.emma.reader) == count
    tables = {"separate": (25 + 2 * 20) * 256, "shared": 27 * 256}
    assert parameters(policy.queries) == tables[table]
    assert parameters(policy.divide_self) + parameters(policy.divide_others) == 27_650
    assert parameters(policy.foresight) == parameters(policy.emma.trunk) == 196_672


@pytest.mark.parametrize("agents", [2, 3])
@pytest.mark.parametrize("agent", AGENTS)
def test_entities_are_divided_and_nothing_else(agent, agents):
    policy, shown = network(agent, agents), scene(agent, agents)
    shown.observation.update(policy.draw_record((12,), torch.Generator().manual_seed(0)))
    output, *_ = act(policy, shown)
    division = output.seen.division
    entity = division.places.is_entity
    assert (division.own + division.others)[entity].eq(1).all()
    assert {*division.own[entity].tolist(), *division.others[entity].tolist()} == {0.0, 1.0}
    if "emma" not in agent:  # there also traces of older frames are hidden
        assert torch.equal(division.places.can_hide, entity)
        assert division.own[~entity].eq(1).all()
    assert output.logits.shape == (12, 5)
    assert output.value.shape == (12,)
    beside = policy.auxiliary(Inputs(shown.observation, *act(policy, shown)[1:]), output, {OTHERS: shown.others})
    assert {name: loss.shape for name, loss in beside.losses.items()} == {"modelling": (12,), "division": (12,)}
    assert set(beside.metrics) == {"modelling_accuracy", "division_entropy"}


def test_normalized_goals_bound_the_division():
    """Whatever the scale of the features that divide, the logits stay as they are, and so does the gradient."""
    shown, chances = scene("endi_dis"), {}
    for normalized in (False, True):
        policy = network("endi_dis", normalize_goals=normalized)
        for scale in (1.0, 100.0):
            with torch.no_grad():
                policy.goal_grounding.register_forward_hook(
                    lambda _, __, seen, by=scale: seen._replace(maps=[by * each for each in seen.maps])
                )
                chances[normalized, scale] = act(policy, shown)[0].seen.division.difference
    assert chances[False, 100.0].abs().max() > 50 * chances[False, 1.0].abs().max()
    torch.testing.assert_close(chances[True, 100.0], chances[True, 1.0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("agent", AGENTS)
def test_every_loss_shapes_the_division(agent):
    policy, shown = network(agent, 3), scene(agent, 3)

    def reaches(loss: torch.Tensor) -> bool:
        policy.zero_grad()
        loss.backward()
        gradients = [p.grad for name, p in policy.named_parameters() if name.startswith("divide")]
        assert gradients
        return all(g is not None and bool(g.any()) for g in gradients)

    output, *_ = act(policy, shown)
    assert reaches((output.logits[:, 0] - output.logits.logsumexp(1)).sum())
    assert reaches(act(policy, shown)[0].value.square().sum())
    for name in ("modelling", "division"):
        assert reaches(learn_beside(policy, shown).losses[name].sum())


def test_what_is_hidden_might_be_anything():
    """On relread: the features of hidden things. On EMMA: what the sentences tell, which is then not read at all."""
    policy, shown = network("endi_dis_relread"), scene("endi_dis_relread")
    with torch.no_grad():
        output, text, document = act(policy, shown)
        division, seen = output.seen
        entity = division.places.is_entity
        other = seen._replace(features=torch.where(entity.unsqueeze(2), seen.features + 1, seen.features))
        hidden = (~entity).float()
        one, same = (
            policy.decide(Inputs(shown.observation, text, document), each, hidden)[0] for each in (seen, other)
        )
        assert torch.equal(one, same)
    policy, shown = network("endi_dis_emma"), scene("endi_dis_emma")
    with torch.no_grad():
        output, text, document = act(policy, shown)
        other = policy.survey(
            Inputs(shown.observation, policy.encode_text(shown.manual.roll(1, 0), shown.goal), document), None
        )
        division, seen = output.seen
        hidden = torch.zeros_like(division.own)
        one, same = (
            policy.decide(Inputs(shown.observation, text, document), each, hidden)[0] for each in (seen, other.seen)
        )
        assert torch.equal(one, same)


def test_views_differ_by_distance_alone():
    """Where both stand in the same place, a division that sets one view against the other has nothing to go on."""
    policy, shown = network("endi_dis"), scene("endi_dis")
    assert isinstance(policy, EnDiTxt2Pi)
    channels = policy.divider.in_channels // 2
    with torch.no_grad():
        policy.divider.weight[:, channels:] = -policy.divider.weight[:, :channels]
        policy.divider.bias.zero_()
        assert act(policy, shown)[0].seen.division.difference.abs().max() > 1e-4
        shown.observation["teammates"][:, 0, :2] = shown.observation["position"]
        assert act(policy, shown)[0].seen.division.difference.abs().max() < 1e-6


@pytest.mark.parametrize("agent", AGENTS)
def test_the_dead_are_not_foreseen(agent):
    policy, shown = network(agent, 3), scene(agent, 3)
    both = learn_beside(policy, shown).losses["modelling"]
    shown.others[:, 1] = -1
    one = learn_beside(policy, shown).losses["modelling"]
    output, text, document = act(policy, shown)
    logits = policy.predict_others(
        Inputs(shown.observation, text, document), output.seen.seen, output.seen.division.others
    )
    torch.testing.assert_close(one, F.cross_entropy(logits[:, 0], shown.others[:, 0], reduction="none"))
    assert (one < both).all()


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_told_of_a_step(agent):
    """Marks, guesses and attention, computed on demand; guesses are those that the losses count as right."""
    policy, shown = network(agent, 3), scene(agent, 3)
    output, text, document = act(policy, shown)
    assert output.aux.keys() - {"word_attention"} == {"marks", "guesses", "attention"}
    assert output.aux["marks"]().dtype == torch.int8
    guesses = output.aux["guesses"]()
    assert guesses.shape == (12, 2)
    assert not guesses.requires_grad
    beside = policy.auxiliary(Inputs(shown.observation, text, document), output, {OTHERS: guesses})
    assert beside.metrics["modelling_accuracy"].eq(1).all()
    blind = network(agent, 3, modelling=False)
    assert act(blind, shown)[0].aux.keys() - {"word_attention"} == {"marks", "attention"}
    assert blind.auxiliary(Inputs(shown.observation, text, document), act(blind, shown)[0], {}).losses.keys() == {
        "division"
    }


@pytest.mark.parametrize("agent", AGENTS)
def test_a_batch_is_replayed_with_its_noise(agent):
    """[T, B] noise is that of T · B rows, and reaches the division; what is learnt has the batch's shape."""
    policy, shown = network(agent), scene(agent)
    noise = policy.draw_record((3, 4), torch.Generator().manual_seed(0))["noise"]
    flat = policy.draw_record((12,), torch.Generator().manual_seed(0))["noise"]
    assert torch.equal(noise.flatten(0, 1), flat)
    observation = {name: array.unflatten(0, (3, 4)) for name, array in shown.observation.items()}
    begins = torch.ones(3, 4, dtype=torch.bool)
    batch = batch_of(policy, observation, shown.manual[:4], shown.goal[:4], begins)._replace(record={"noise": noise})
    output = policy(batch)
    rows = {"noise": flat, **shown.observation}
    expected = policy.respond(Inputs(rows, batch.texts["document"].encoding, torch.arange(4).repeat(3)))
    assert torch.equal(output.logits.flatten(0, 1), expected.logits)
    assert torch.equal(output.aux["marks"]().flatten(0, 1), expected.aux["marks"]())
    assert not torch.equal(policy(batch._replace(record={})).aux["marks"](), output.aux["marks"]())
    learnt = policy.losses(batch, output, {OTHERS: shown.others.unflatten(0, (3, 4))}, ())
    assert {each.shape for part in learnt for each in part.values()} == {(3, 4)}
    assert policy.losses(batch, output, {}, ()).losses.keys() == {"division"}


@pytest.mark.parametrize(("grounding", "alone"), [("txt2pi", "txt2pi"), ("emma", "emma"), ("relread", "relread")])
def test_one_agent_has_nobody_to_divide_with(grounding, alone):
    """What is left is the grounding module, weight for weight."""
    env = "messenger" if grounding == "emma" else "rtfm"
    spec = mg.make_vec(env, 1).spec
    weights = [
        build_policy(agent, spec, options, 0).state_dict()
        for agent, options in (("endi_dis", {"grounding": grounding}), (alone, {}))
    ]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
