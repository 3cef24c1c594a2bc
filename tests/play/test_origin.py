"""A team refuses games that it was not trained for, in one sentence; what is merely new to it, it plays."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.play.evaluate import evaluate

MISFITS = [
    ("messenger-s3", "rtfm", {}),
    ("messenger-s3", "messenger", {"stage": "s3", "game_id": True}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s5", "agents": 3}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s5", "agents": 1}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s5", "occupants": 1}),
    ("ma_rtfm-s5-2agents", "ma_messenger", {}),
    ("rtfm-nl", "ma_rtfm", {}),
]

FITS = [
    ("rtfm-nl", "rtfm", {"task": "nl"}),
    ("rtfm-nl", "rtfm", {"task": "simple_stationary", "size": 10, "split": "eval"}),
    ("rtfm-nl", "rtfm", {"task": "nl", "split": "eval_paraphrase"}),
    ("rtfm-nl", "rtfm", {"task": "nl", "split": "eval_new", "resample_text": True}),
    ("rtfm-nl", "ma_rtfm", {"stage": "s2", "agents": 1}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s5", "layout": "stream"}),
    ("ma_rtfm-s5-2agents", "ma_rtfm", {"stage": "s1", "size": 12, "manual": "reassigned"}),
    ("ma_rtfm-s1-2agents", "ma_rtfm", {"stage": "s5", "death": "individual"}),
    ("messenger-s3", "messenger", {"stage": "s2", "split": "test"}),
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


def test_words_with_other_ids_are_refused_where_all_shapes_are_the_same(load):
    """Of ids alone nobody can tell: the vector env says what its words are."""
    team, vec = load("rtfm-nl"), mg.make_vec("rtfm", 2, task="nl")
    seen, info = vec.reset(seed=0)
    swapped = mg.make_vec("rtfm", 2, task="nl").reset(seed=0)[1]
    spec = vec.spec
    words = (spec.words[0], *reversed(spec.words[1:]))
    swapped.origin = ("rtfm", type(spec)(**{**vars_of(spec), "words": words}))
    team.act(seen, team.initial_memory(2), info)
    with pytest.raises(ConfigurationError):
        team.act(seen, team.initial_memory(2), swapped)


def vars_of(spec):
    return {name: getattr(spec, name) for name in type(spec).__dataclass_fields__}


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("grid", lambda a: a + np.int16(999)),
        ("grid", lambda a: a - np.int16(9)),
        ("grid", lambda a: a.astype(float)),
        ("grid", lambda a: a.tolist()),
        ("grid", lambda a: a[:, 0]),
        ("position", lambda a: a + np.int16(90)),
        ("manual", lambda a: a[:, :-1]),
        ("action_mask", lambda a: a[..., :-1]),
        ("goal", None),
    ],
)
def test_arrays_that_are_no_observation(load, key, change):
    team, vec = load("rtfm-nl"), mg.make_vec("rtfm", 2, task="nl")
    seen, info = vec.reset(seed=0)
    seen = {name: array if name != key else change and change(array) for name, array in seen.items()}
    with pytest.raises(ConfigurationError):
        team.act({name: array for name, array in seen.items() if array is not None}, team.initial_memory(2), info)


def test_a_memory_of_other_games_or_another_team(load):
    team, vec = load("rtfm-nl"), mg.make_vec("rtfm", 4, task="nl")
    seen, info = vec.reset(seed=0)
    with pytest.raises(ConfigurationError):
        team.act(seen, team.initial_memory(3), info)
    for memory in (None, [], {}, team.initial_memory(4) * 2, mg.load_team("pretrained:rtfm-nl").initial_memory(4)):
        with pytest.raises(ConfigurationError):
            team.act(seen, memory, info)
    with pytest.raises(ConfigurationError):
        team.act(mg.make("rtfm").reset(seed=0)[0], team.initial_memory(4))
    with pytest.raises(ConfigurationError):
        team.act(seen, team.initial_memory(4), {"done": [True]})
    with pytest.raises(ConfigurationError):
        team.act(seen, team.initial_memory(4), info, rows=[4])


@pytest.mark.parametrize("device", ["foo", "cuda:99", "meta", None, 3])
def test_a_device_that_is_not_there(device):
    with pytest.raises(ConfigurationError):
        mg.load_team("pretrained:rtfm-nl", device=device)


@pytest.mark.parametrize("source", [None, 3, b"x", ["pretrained:rtfm-nl"]])
def test_what_no_team_can_be_loaded_from(source):
    with pytest.raises(ConfigurationError):
        mg.load_team(source)
