"""relread reads by relations: it knows no word, no size of map and no order of statements."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.relread.manual_reader import ManualReader
from magrounding.agents.relread.network import Relread
from tests.agents.samples import documents_of, seen_by


def observe(row_count=16, seed=0, env="ma_rtfm", steps=6, **options):
    """Observations of agent 0 some random steps into games, and their texts."""
    vec = mg.make_vec(env, row_count, copy=True, **options)
    observation, _ = vec.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        observation, *_ = vec.step(rng.integers(0, 5, (row_count, vec.num_agents)))
    return vec.spec, seen_by(0, observation, vec.spec), *documents_of(observation)


@pytest.fixture(params=[False, True], ids=["words", "phrases"])
def phrases(request):
    return request.param


@pytest.fixture
def policy(phrases):
    return fresh(observe(stage="s5", agents=2)[0], phrases=phrases)


def fresh(spec, **options):
    torch.manual_seed(0)
    policy = make_policy("relread", spec, **options)
    assert isinstance(policy, Relread)
    torch.nn.init.normal_(policy.policy.weight)  # as made it is nearly indifferent, which would hide differences
    return policy.eval()


def act(policy, observation, manual, goal):
    with torch.no_grad():
        return policy.respond(Inputs(observation, policy.encode_text(manual, goal), torch.arange(len(manual))))


def test_the_border_is_where_the_map_at_hand_has_it(policy):
    """A policy made for 8×8 sees a 10×10 map as one made for 10×10 does."""
    spec, observation, manual, goal = observe(stage="s5", agents=2, size=10)
    other = fresh(spec, phrases=policy.config.phrases)
    other.load_state_dict(policy.state_dict())
    expected, actual = act(other, observation, manual, goal), act(policy, observation, manual, goal)
    torch.testing.assert_close(actual.logits, expected.logits)


def test_the_order_of_statements_says_nothing(policy):
    _, observation, manual, goal = observe(stage="s5", agents=2)
    there = act(policy, observation, manual, goal)
    back = act(policy, observation, manual.flip(1), goal)
    torch.testing.assert_close(there.logits, back.logits, atol=1e-4, rtol=1e-4)


def test_no_identity_of_a_word_reaches_the_policy(phrases):
    """Renaming all words changes nothing: only relations between words are used."""
    spec, observation, manual, goal = observe(stage="s5", agents=2)
    policy = fresh(spec, phrases=phrases)
    known = 1 + max(*spec.grid.scenery_ids, *spec.grid.avatar_ids)
    order = torch.cat((torch.arange(known), known + torch.randperm(spec.vocabulary_size - known)))

    def rename(ids):
        return order[ids.long()].to(ids.dtype)

    there = act(policy, observation, manual, goal)
    observation = {**observation, "grid": rename(observation["grid"]), "inventory": rename(observation["inventory"])}
    mates = observation["teammates"].clone()
    mates[:, :, 2:] = rename(mates[:, :, 2:])
    back = act(policy, {**observation, "teammates": mates}, rename(manual), rename(goal))
    torch.testing.assert_close(back.logits, there.logits, atol=1e-4, rtol=1e-4)


def test_a_goal_is_found_by_its_phrases_where_small_words_mislead():
    vocabulary = mg.make_vec("rtfm", 1, task="nl").spec.vocabulary
    manual = torch.stack(
        [
            torch.from_numpy(vocabulary.encode(sentence, 24))
            for sentence in (
                "who fights for the rebel enclave ? mostly ghost , panther , shaman , according to our scouts .",
                "bat , goblin , zombie marched behind the flag of the star alliance this morning .",
            )
        ]
    )
    goal = torch.from_numpy(vocabulary.encode("can you wipe out the star alliance for us ?", 12))
    by_words, by_phrases = (
        ManualReader(len(vocabulary), phrases=phrases)(manual[None], goal[None])["goal"][0].tolist()
        for phrases in (False, True)
    )
    assert by_words == [2.25, 2.25]  # for and ?; star and alliance; and a quarter, as both have "the"
    assert by_phrases == [2.25, 4.75]


def test_it_sees_the_place_of_things_relative_to_itself(policy):
    """The same scene one column further, wall or not, looks the same but for the border."""
    _, observation, manual, goal = observe(stage="s5", agents=2, steps=0)
    things = policy.find(observation)
    text = policy.encode_text(manual, goal)
    with torch.no_grad():
        features = policy.relate(things, text, torch.arange(16))
        right, position = things._replace(column=things.column + 1), observation["position"]
        here = policy.look(things, features, position, torch.zeros(16, policy.config.hidden))
        moved = policy.look(right, features, position + torch.tensor([0, 1]), torch.zeros(16, policy.config.hidden))
        aside = policy.look(right, features, position, torch.zeros(16, policy.config.hidden))
    torch.testing.assert_close(here, moved)
    assert not torch.allclose(here, aside)
