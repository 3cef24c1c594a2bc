"""Names that share a vector, and the map that says where those attended to stand."""

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.matching import Matching
from magrounding.errors import ConfigurationError
from magrounding.teams.player import Player, shown_to
from tests.agents.samples import NARROW_SIR, make_spec
from tests.agents.test_reasoning import NARROW

RANKS = torch.tensor([0, 0, 1, 2, 3])
"""Words 2 to 4 are names."""


def matching(codes=None):
    grid = torch.tensor([[[[2, 1], [3, 0]], [[4, 2], [0, 0]]]])
    text = {"ids": torch.tensor([[1, 2, 3, 2]])}
    return Matching(
        Inputs({"grid": grid, "inventory": torch.tensor([[1, 3]])}, text, torch.zeros(1).long()), RANKS, 3, codes
    )


def test_a_cell_fits_by_the_weights_of_its_names():
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1]])
    fit, held = matching()(weights)
    torch.testing.assert_close(fit, 4 * torch.tensor([[[[0.4, 0.2], [0.4, 0.0]]]]))
    torch.testing.assert_close(held, 4 * torch.tensor([[0.2]]))
    shown, _ = matching()(weights, torch.tensor([[1.0, 0.0, 1.0, 1.0]]))
    assert shown[0, 0, 0, 1] == 0
    # Codes that are one-hot say of all words what equality says of names.
    codes = torch.nn.functional.one_hot(RANKS).float()[:, 1:]
    for learnt, equal in zip(matching(codes)(weights), (fit, held), strict=True):
        torch.testing.assert_close(learnt, equal)


def test_names_of_cells_and_of_what_is_held_are_found_in_the_document():
    assert matching().named_in(torch.tensor([[[False, True], [False, False]]])).tolist() == [
        [False, False, True, False]
    ]
    states = torch.arange(4.0).view(1, 4, 1)
    assert matching().state_of_held(states).tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("agent", "env", "narrow"),
    [("txt2pi", "rtfm", NARROW), ("endi_dis", "ma_rtfm", NARROW), ("sir_local_conv", "rtfm", NARROW_SIR)],
)
def test_games_that_differ_in_names_alone_are_one_game(agent, env, narrow):
    vec = mg.make_vec(env, 16)
    spec, (observation, _) = vec.spec, vec.reset(seed=0)
    ids, other = np.array([spec.vocabulary[word] for word in sorted(spec.names)]), np.arange(spec.vocabulary_size)
    other[ids] = np.roll(ids, 1)
    renamed = {name: array.copy() for name, array in observation.items()}
    for name in ("grid", "manual", "goal", "inventory"):
        renamed[name] = other[renamed[name]].astype(np.int16)
    for names, alike in (("vectors", False), ("shared", True)):
        torch.manual_seed(0)
        policy = make_policy(agent, spec, **narrow, names=names, match="equal")
        assert policy.depends_on_names is not alike
        weights = load(save(policy.state_dict()))  # no two names have one tensor
        policy.load_state_dict(weights)
        one, two = (
            Player(policy, spec, 16).choose(shown_to(0, seen, spec, None), np.ones(16, bool), greedy=True).logits
            for seen in (observation, renamed)
        )
        assert np.allclose(one, two, atol=1e-5) is alike


def test_what_is_a_name_the_world_says():
    for option in ({"names": "shared"}, {"match": "learnt"}):
        with pytest.raises(ConfigurationError):
            make_policy("txt2pi", make_spec(6), **NARROW, **option)


@pytest.mark.parametrize(("agent", "narrow"), [("txt2pi", NARROW), ("endi_dis", NARROW), ("sir", NARROW_SIR)])
def test_names_are_dealt_by_the_manual_and_in_training_alone(agent, narrow):
    vec = mg.make_vec("rtfm" if agent == "sir" else "ma_rtfm", 16)
    spec, (observation, _) = vec.spec, vec.reset(seed=0)
    policy = make_policy(agent, spec, **narrow, names="dealt", match="learnt")
    names = torch.tensor([spec.vocabulary[word] for word in sorted(spec.names)])
    dealer, table = policy.dealer, policy.reader.words.weight
    drawn = dealer.draw(torch.from_numpy(observation["manual"]))
    assert len({tuple(row) for row in drawn.tolist()}) > 12
    for one in drawn[:4]:
        dealt = dealer.deal(names[None], one[None])[0]
        assert len(set(dealt.tolist())) == len(names)
        assert (dealt >= spec.vocabulary_size).all()
    plain = torch.tensor([[spec.vocabulary["empty"], 0]])
    assert dealer.deal(plain, drawn[:1]).equal(plain)
    assert (table[names].abs() == 1).all()
    table.sum().backward()
    assert not policy.reader.words.parametrizations["weight"].original.grad[names].any()
    learning, playing = (
        Player(policy, spec, 16).choose(shown_to(0, observation, spec, None), np.ones(16, bool), learning=each).logits
        for each in (True, False)
    )
    assert not np.allclose(learning, playing)
