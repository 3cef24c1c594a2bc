"""A team refuses games that it was not trained for, in one sentence; what is merely new to it, it plays."""

import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.teams.evaluate import evaluate

MISFITS = [
    ("messenger-s3", "rtfm", {}),
    ("messenger-s3", "messenger", {"stage": "s3", "game_id": True}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s5", "agents": 3}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s5", "occupants": 1}),
    ("ma_rtfm-s5-2agents", "ma_messenger", {}),
    ("rtfm-nl", "ma_rtfm", {}),
]

FITS = [
    ("rtfm-nl", "rtfm", {"task": "simple_stationary", "size": 10, "split": "eval"}),
    ("rtfm-nl", "rtfm", {"task": "nl", "split": "eval_paraphrase"}),
    ("rtfm-nl", "rtfm", {"task": "nl", "split": "eval_new", "resample_text": True}),
    ("rtfm-nl", "ma_rtfm", {"stage": "s2", "agents": 1}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s1", "size": 12, "layout": "stream", "manual": "reassigned"}),
    ("ma_rtfm-s1-2agents", "ma_rtfm", {"stage": "s5", "death": "individual"}),
    ("messenger-s2", "messenger", {"stage": "s3"}),
    ("ma_messenger-s4-2agents", "ma_messenger", {"stage": "s1"}),
]


@pytest.fixture(scope="module")
def load():
    teams = {}
    return lambda name: teams.setdefault(name, mg.load_team(f"pretrained:{name}"))


@pytest.mark.parametrize(("name", "env", "options"), MISFITS)
def test_a_team_refuses_what_it_was_not_trained_for(load, name, env, options):
    team, vec, single = load(name), mg.make_vec(env, 3, **options), mg.make(env, **options)
    seen, info = vec.reset(seed=0)
    for told in (info, None):
        with pytest.raises(ConfigurationError):
            team.act(seen, team.initial_memory(3), told)
    with pytest.raises(ConfigurationError):
        team.act(single.reset(seed=0)[0], team.initial_memory(1))
    with pytest.raises(ConfigurationError):
        evaluate(team, env, options, 2)
    vec.close()
    single.close()


@pytest.mark.parametrize(("name", "env", "options"), FITS)
def test_a_team_plays_other_sizes_stages_splits_and_sentences(load, name, env, options):
    team, vec, single = load(name), mg.make_vec(env, 2, **options), mg.make(env, **options)
    seen, info = vec.reset(seed=0)
    vec.step(team.act(seen, team.initial_memory(2), info)[0])
    seen, _ = single.reset(seed=0)
    single.step(team.act(seen, team.initial_memory(1))[0])


@pytest.mark.parametrize("device", ["foo", "cuda:99", "meta", None, 3])
def test_a_device_that_is_not_there(device):
    with pytest.raises(ConfigurationError):
        mg.load_team("pretrained:rtfm-nl", device=device)
