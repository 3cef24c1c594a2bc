"""EnDi on each grounding module: sizes, masks, gradients, what hides what."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import magrounding as mg
from magrounding.agents.policy import make_policy
from magrounding.agents.team import Team, build_policy
from magrounding.endi.agent import make_endi
from magrounding.endi.on_emma import EnDiEmma, _nearest
from magrounding.endi.on_relread import EnDiRelread
from magrounding.endi.on_txt2pi import EnDiTxt2Pi
from magrounding.errors import ConfigurationError
from magrounding.training.presets import find_preset
from magrounding.training.settings import RunSettings
from tests.agents.samples import make_spec
from tests.endi.games import NETWORKS, act, learn_beside, network, scene

AGENTS = tuple(NETWORKS)


def parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_parameters_on_txt2pi():
    spec = make_spec(8, vocabulary_size=262)
    assert parameters(make_policy("endi_dis", spec)) == 709_295
    assert parameters(make_policy("endi_num", replace(spec, num_agents=4))) == 709_295 + 2 * 325
    assert parameters(make_policy("endi_sup", spec)) == 709_295 - 325


@pytest.mark.parametrize(("table", "count"), [("separate", 2_881_295), ("shared", 2_871_567)])
def test_parameters_on_emma(table, count):
    """With the paper's reader, whose states are 768 wide and which is not trained."""
    spec = mg.make_vec("ma_messenger", 1, stage="s2", agents=2).spec
    policy = make_policy("endi_dis_emma", spec, embedding=768, offset_table=table)
    assert isinstance(policy, EnDiEmma)
    assert parameters(policy) - parameters(policy.emma.reader) == count


@pytest.mark.parametrize("agents", [2, 3])
@pytest.mark.parametrize("agent", AGENTS)
def test_entities_are_divided_and_nothing_else(agent, agents):
    policy, shown = network(agent, agents), scene(agent, agents)
    shown.observation["noise"] = policy.draw_noise(12, torch.Generator().manual_seed(0))
    output, *_ = act(policy, shown)
    division = output.division
    assert division is not None
    entity = division.places.is_entity
    assert (division.own + division.others)[entity].eq(1).all()
    assert {*division.own[entity].tolist(), *division.others[entity].tolist()} == {0.0, 1.0}
    if "emma" not in agent:  # there also traces of older frames are hidden
        assert torch.equal(division.places.can_hide, entity)
        assert division.own[~entity].eq(1).all()
    assert output.logits.shape == (12, 5)
    assert output.value.shape == (12,)
    beside = policy.auxiliary(shown.observation, *act(policy, shown)[1:], output, shown.others)
    assert beside.modelling.shape == beside.division.shape == (12,)
    assert set(beside.facts) == {"modelling_accuracy", "division_entropy"}


def test_on_relread_it_begins_by_taking_most():
    """Chance decides each: it could learn neither from what it always takes nor from what it always leaves."""
    shown = scene("endi_dis_relread", 3, rows=200)
    spec = mg.make_vec("ma_rtfm", 1, stage="s2", agents=3).spec
    division = act(build_policy("endi_dis_relread", spec, {}, 0), shown)[0].division
    chance = division.difference[division.places.is_entity].sigmoid()
    assert chance.min() > 0.6
    assert chance.max() < 0.95


@pytest.mark.parametrize("agents", [2, 3])
@pytest.mark.parametrize("agent", AGENTS)
def test_every_loss_shapes_the_division(agent, agents):
    policy, shown = network(agent, agents), scene(agent, agents)

    def reaches(loss: torch.Tensor) -> bool:
        policy.zero_grad()
        loss.backward()
        gradients = [p.grad for name, p in policy.named_parameters() if name.startswith("divide")]
        assert gradients
        return all(g is not None and bool(g.any()) for g in gradients)

    output, *_ = act(policy, shown)
    assert reaches((output.logits[:, 0] - output.logits.logsumexp(1)).sum())
    assert reaches(act(policy, shown)[0].value.square().sum())
    assert reaches(learn_beside(policy, shown).modelling.sum())
    assert reaches(learn_beside(policy, shown).division.sum())


@pytest.mark.parametrize("agent", AGENTS)
def test_every_parameter_learns(agent):
    policy, shown = network(agent), scene(agent, rows=24)
    output, *_ = act(policy, shown)
    beside = learn_beside(policy, shown)
    loss = output.logits.log_softmax(1)[:, 0].sum() + output.value.square().sum()
    (loss + beside.modelling.sum() + beside.division.sum()).backward()
    # A softmax over what a layer scores does not notice the layer's bias.
    learn = {name: p.grad for name, p in policy.named_parameters() if not name.endswith("score.bias")}
    assert [name for name, gradient in learn.items() if gradient is None or not gradient.any()] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_masks_decide_what_either_branch_sees(agent):
    policy, shown = network(agent), scene(agent)
    with torch.no_grad():
        output, text, document = act(policy, shown)
        where = (shown.observation, text, document, output.seen)
        everything = torch.ones_like(output.division.own)
        nothing = torch.where(output.division.places.can_hide, 0.0, everything)
        for branch in (lambda mask: policy.decide(*where, mask)[0], lambda mask: policy.foresee(*where, mask)):
            assert not torch.allclose(branch(everything), branch(nothing))


def test_what_is_hidden_might_be_anything():
    """On relread: the features of hidden things. On EMMA: what the sentences tell, which is then not read at all."""
    policy, shown = network("endi_dis_relread"), scene("endi_dis_relread")
    with torch.no_grad():
        output, text, document = act(policy, shown)
        seen, entity = output.seen, output.division.places.is_entity
        other = seen._replace(features=torch.where(entity.unsqueeze(2), seen.features + 1, seen.features))
        hidden = (~entity).float()
        one, same = (policy.decide(shown.observation, text, document, each, hidden)[0] for each in (seen, other))
        assert torch.equal(one, same)
    policy, shown = network("endi_dis_emma"), scene("endi_dis_emma")
    with torch.no_grad():
        output, text, document = act(policy, shown)
        other = policy.survey(
            shown.observation, policy.encode_text(shown.manual.roll(1, 0), shown.goal), document, None
        )
        hidden = torch.zeros_like(output.division.own)
        one, same = (
            policy.decide(shown.observation, text, document, each, hidden)[0] for each in (output.seen, other.seen)
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
        assert act(policy, shown)[0].division.difference.abs().max() > 1e-4
        shown.observation["teammates"][:, 0, :2] = shown.observation["position"]
        assert act(policy, shown)[0].division.difference.abs().max() < 1e-6


@pytest.mark.parametrize("agent", AGENTS)
def test_the_dead_are_not_foreseen(agent):
    policy, shown = network(agent, 3), scene(agent, 3)
    shown.others.acted[:, 1] = False
    loss = learn_beside(policy, shown).modelling
    shown.others.action[:, 1] = (shown.others.action[:, 1] + 1) % 5
    assert torch.equal(learn_beside(policy, shown).modelling, loss)
    shown.others.action[:, 0] = (shown.others.action[:, 0] + 1) % 5
    assert not torch.equal(learn_beside(policy, shown).modelling, loss)


@pytest.mark.parametrize("agent", AGENTS)
def test_where_the_dead_lie_does_not_matter(agent):
    policy, shown = network(agent, 3), scene(agent, 3)
    mates = shown.observation["teammates"]
    mates[:, 0, :2] = torch.tensor([2, 3])
    mates[:, 1] = -1  # and the agent itself, in a few
    shown.observation["position"][:3] = -1
    output, *_ = act(policy, shown)
    beside = learn_beside(policy, shown)
    for tensor in (output.logits, output.value, beside.modelling, beside.division, *beside.facts.values()):
        assert tensor.isfinite().all()


def test_the_nearest_is_the_first_of_equals():
    position = torch.tensor([[2, 2]] * 4)
    mates = torch.tensor([[[2, 4], [4, 2]], [[5, 5], [3, 2]], [[-1, -1], [9, 9]], [[-1, -1], [-1, -1]]])
    nearest = _nearest(position, mates)
    assert nearest[:3].tolist() == [[2, 4], [3, 2], [9, 9]]
    assert (nearest[3] < -1000).all()


def test_emmas_occupied_cells_are_those_of_the_whole_map():
    policy, shown = network("endi_dis_emma", 3), scene("endi_dis_emma", 3)
    assert isinstance(policy, EnDiEmma)
    with torch.no_grad():
        text, document = policy.encode_text(shown.manual, shown.goal), torch.arange(12)
        memory = policy.initial_memory(12)
        memory[6:, 1] = shown.observation["grid"][:6]
        survey = policy.survey(shown.observation, text, document, memory)
        mask = torch.rand(12, 100, generator=torch.Generator().manual_seed(0)).round()
        maps = policy.emma.ground(shown.observation, text, document, entity_mask=mask.view(12, 10, 10), memory=memory)
        expected = F.leaky_relu(policy.emma.trunk(maps)).permute(0, 2, 3, 1).flatten(1)
        torch.testing.assert_close(policy._look(survey.seen, mask, policy.emma.trunk), expected)


@pytest.mark.parametrize("agent", ["endi_dis", "endi_dis_relread"])
def test_one_set_of_weights_for_every_size(agent):
    policy = network(agent)
    for size in (6, 10):
        output, *_ = act(policy, scene(agent, size=size))
        assert output.division.taken(size, size).shape == (12, size, size)
        assert output.logits.isfinite().all()


@pytest.mark.parametrize("agent", AGENTS)
def test_learns_sixteen_transitions_by_heart(agent):
    """Its own actions and those of the others."""
    policy, shown = network(agent, 3, modelling=True), scene(agent, 3, rows=16, seed=1)
    action = torch.rand(16, 5, generator=torch.Generator().manual_seed(2))
    action = action.where(shown.observation["action_mask"].bool(), -1.0).argmax(1)
    optimizer = torch.optim.Adam(policy.parameters(), 0.005)
    accuracy = []
    while len(accuracy) < 500 and max(accuracy, default=0) <= 0.95:
        output, text, document = act(policy, shown)
        beside = policy.auxiliary(shown.observation, text, document, output, shown.others)
        own = (output.logits.argmax(1) == action).float().mean().item()
        accuracy.append(min(own, beside.facts["modelling_accuracy"].mean().item()))
        optimizer.zero_grad()
        (F.cross_entropy(output.logits, action) + beside.modelling.mean()).backward()
        optimizer.step()
    assert accuracy[0] < 0.7
    assert accuracy[-1] > 0.95


def test_a_team_shows_how_it_divides():
    agent = "endi_dis_relread"
    vec = mg.make_vec("ma_rtfm", 3, stage="s2", agents=2)
    team = Team([network(agent, seed=i) for i in range(2)], vec.spec)
    memory, seen = team.initial_memory(3), vec.reset(seed=0)
    assert team.taken(memory) is None
    _, memory = team.act(seen, memory, vec.info)
    taken = team.taken(memory)
    assert taken.shape == (3, 2, 8, 8)
    assert ((taken >= 0).sum((2, 3)) > 1).all()
    _, memory = team.act(seen, memory, vec.info, greedy=False)
    assert (team.taken(memory) == taken).all()  # nothing is drawn but actions
    env = mg.make("ma_rtfm", stage="s2", agents=2, render_mode="ansi")
    env.reset(seed=0)
    assert "taken by agent" not in env.render()
    assert env.render(taken[0]).count("taken by agent") == (taken[0] == 1).any(0).sum()


def test_variants_and_their_options():
    spec = mg.make_vec("ma_rtfm", 1, stage="s2", agents=2).spec
    assert not make_policy("endi_sup_relread", spec).models_others
    assert make_policy("endi_reg_relread", spec).config.regularizer == "none"
    assert isinstance(make_policy("endi_num", spec, grounding="relread"), EnDiRelread)
    with pytest.raises(ConfigurationError, match="unknown regularizer 'dist'; choose from: num, dis, none"):
        make_endi(replace(spec, num_agents=1), regularizer="dist")
    with pytest.raises(ConfigurationError, match="unknown grounding 'sir'; choose from: txt2pi, emma, relread"):
        make_policy("endi_dis", spec, grounding="sir")
    with pytest.raises(ConfigurationError, match="itself sets regularizer to 'num'"):
        make_policy("endi_num", spec, regularizer="dis")
    with pytest.raises(ConfigurationError, match="unknown option of endi on relread 'chanels'"):
        make_policy("endi_num_relread", spec, chanels=3)


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


def test_presets_of_a_network_are_also_for_what_is_built_on_it():
    preset = find_preset("quick_rl", "ma_messenger")
    assert preset.policy_options
    for agent, options in (("endi_dis_relread", preset.policy_options), ("endi_dis_emma", {}), ("txt2pi", {})):
        assert RunSettings("ma_messenger", agent, 2, preset, ("s1",)).policy_options == options
