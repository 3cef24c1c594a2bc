"""Teams and words they were not trained on: what can read them does, what cannot says so, nothing is misread."""

import json

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.agents.remapping import reads_any_words, remap_embeddings
from magrounding.agents.weights import save_weights
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.teams.evaluate import evaluate
from magrounding.teams.loading import load_team
from magrounding.teams.team import Team
from tests.envs.people_corpus import our_sentences, small_corpus, write_corpus

READER = "pretrained:messenger-s2"


def policy_of(agent, env="messenger", **options):
    return build_policy(agent, mg.ENVS[env].describe(stage="s1"), options, seed=0)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("people"), small_corpus(whole=True))


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """Ours without the sentences of one cell that no game of `test` needs, so that most words have other ids."""
    data = our_sentences()
    data["train"]["airplane"]["enemy"] = {"unknown": ["zounds !"]}
    return write_corpus(tmp_path_factory.mktemp("shifted"), data)


def test_words_that_are_spelt_alike_are_read_alike_whatever_their_ids(shifted):
    own, other = ({"stage": "s2", "split": "test", "corpus": corpus} for corpus in (None, shifted))
    words = [mg.ENVS["messenger"].describe(**options).words for options in (own, other)]
    assert sum(a != b for a, b in zip(*words, strict=False)) > 20
    team = load_team(READER)
    before, after = (evaluate(team, "messenger", options, 40) for options in (own, other))
    assert np.array_equal(before.won, after.won)
    assert np.array_equal(before.length, after.length)
    assert before.won.mean() > 0.8


@pytest.mark.parametrize(
    ("agent", "options"),
    [("relread", {}), ("relread", {"similarity": 4, "meaning": 2, "motion": 4}), ("qmix_relread", {"similarity": 4})],
)
def test_rows_go_with_the_spelling_and_all_else_stays(agent, options, people):
    policy = policy_of(agent, **options)
    spec = mg.ENVS["messenger"].describe(stage="s1", corpus=people)
    other = remap_embeddings(policy, spec)
    assert reads_any_words(policy) == (not options)
    assert policy.word_rows is not None
    assert other.word_rows is not None
    before, after = policy.state_dict(), other.state_dict()
    for name, tensor in after.items():
        if name not in other.word_rows:
            assert torch.equal(tensor, before[name])
            continue
        old = dict(zip(policy.word_rows[name], before[name], strict=True))
        for spelling, row in zip(other.word_rows[name], tensor, strict=True):
            assert torch.equal(row, old.get(spelling, torch.zeros_like(row)))
        assert len(set(other.word_rows[name]) & set(old)) > 10
        assert set(other.word_rows[name]) - set(old)


@pytest.mark.parametrize("agent", ["emma", "txt2pi", "sir", "film"])
def test_networks_with_words_of_their_own_refuse_others_in_a_sentence(agent, people):
    spec = mg.ENVS["messenger"].describe(stage="s1")
    team = Team([policy_of(agent)], spec, env="messenger")
    games = mg.make_vec("messenger", 2, stage="s1", split="test", corpus=people)
    with pytest.raises(ConfigurationError):
        team.for_games(games)
    with pytest.raises(ConfigurationError):
        evaluate(team, "messenger", {"stage": "s1", "split": "test", "corpus": people}, 2)
    with pytest.raises(ConfigurationError):
        team.act(*_began(games, team))


def _began(games, team):
    observation, info = games.reset(seed=0)
    return observation, team.initial_memory(games.num_envs), info


def test_a_single_env_that_speaks_with_other_ids_is_not_misread(shifted):
    team = load_team(READER)
    env = mg.make("messenger", stage="s2", split="test", corpus=shifted)
    with pytest.raises(ConfigurationError):
        _play(team, env)
    _play(team.for_games(env), env)


def _play(team, env):
    seen, infos = env.reset(seed=2)
    memory, begun = team.initial_memory(1), False
    while env.agents:
        actions, memory = team.act(seen, memory, infos if begun else None)
        seen, _, _, _, infos = env.step(actions)
        begun = True


def test_weights_are_refused_for_their_vocabulary_where_they_are_about_words(tmp_path):
    for name, options in (("any", {}), ("own", {"similarity": 4})):
        config = {"env": "messenger", "agent": "relread", "agents": 1, "stages": ["s1"], "seeds": [0]}
        config |= {"env_options": {}, "network": options}
        record = {"env": "messenger", "vocabulary": "of another day"}
        save_weights(tmp_path / name / "s1", [policy_of("relread", **options).state_dict()], record)
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    assert load_team(tmp_path / "any").num_agents == 1
    with pytest.raises(CheckpointError):
        load_team(tmp_path / "own")
