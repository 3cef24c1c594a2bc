"""Manuals of MESSENGER that leave out what a game does not need: `omission`."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.envs.messenger.arrays import ENTITIES, GOAL, HOLDS, KIND, MESSAGE, ROLE
from magrounding.envs.messenger.manual import LAYOUTS, find_corpus, without_punctuation
from magrounding.play.player import Player, shown_to

GAMES = 300
WORLDS = [
    ("messenger", {"stage": "s1"}),
    ("messenger", {"stage": "s2"}),
    ("messenger", {"stage": "s3"}),
    ("ma_messenger", {"stage": "s2"}),
    ("ma_messenger", {"stage": "s4", "agents": 3}),
]


def started(env="messenger", games=GAMES, seed=3, **options):
    vec = mg.make_vec(env, games, **options)
    return vec, *vec.reset(seed=seed)


def told_by(sentence):
    """(entity, role) of which our training text may say such a sentence."""
    return {
        (entity, role) for (entity, role, _), told in find_corpus(None).sentences["train"].items() if sentence in told
    }


@pytest.mark.parametrize(("env", "options"), WORLDS, ids=str)
def test_only_what_says_where_to_go_is_left_of_the_shortest_manual(env, options):
    vec, *_ = started(env, omission=1.0, **options)
    kinds = [
        {row[ROLE]: ENTITIES[row[KIND]] for row in game} for game in vec.world._games.entities[:, vec.num_agents :]
    ]
    begins_with = vec.world._games.entities[:, 0, HOLDS]
    if options["stage"] in ("s1", "s2"):
        delivers = env == "messenger" and options["stage"] == "s2"
        assert delivers or 0.1 < begins_with.mean() < 0.3
    else:
        delivers = True
    for row in range(0, GAMES, 7):
        needed = {(kinds[row][MESSAGE], "message")} if not begins_with[row] else set()
        needed |= {(kinds[row][GOAL], "goal")} if begins_with[row] or delivers else set()
        said = list(filter(None, vec.world.text(row)["manual"]))
        assert len(said) == len(needed)
        assert all(any(each in told_by(sentence) for sentence in said) for each in needed)


@pytest.mark.parametrize("manual", ["true", "reassigned"])
def test_whole_manuals_are_what_they_were_and_keys_name_what_is_left(manual):
    (_, whole, named), (_, short, renamed) = (
        started(stage="s3", manual=manual, omission=omission) for omission in (0.0, 0.5)
    )
    for name, array in whole.items():
        if name != "manual":
            assert np.array_equal(array, short[name])
    kept = short["manual"].any(-1)
    assert np.array_equal(whole["manual"][kept], short["manual"][kept])
    assert np.array_equal(kept.all(1), named.document == renamed.document)
    mean = (kept.sum(1) - 2).mean()  # of four descriptions that no game needs, half remain
    assert abs(mean - 2) < 5 * np.sqrt(4 * 0.25 / GAMES)


def test_a_reassigned_manual_keeps_the_descriptions_that_a_true_one_keeps():
    shown = [started(stage="s3", manual=manual, omission=0.5)[1]["manual"].any(-1) for manual in ("true", "reassigned")]
    assert np.array_equal(*shown)


def test_rows_that_are_joined_leave_out_the_same():
    rows, *joined = (started(stage="s3", omission=0.5, layout=layout)[0].world for layout in LAYOUTS)
    for row in range(GAMES):
        text = " ".join(filter(None, rows.text(row)["manual"]))
        assert [world.text(row)["manual"] for world in joined] == [[text], [without_punctuation(text)]]


def test_a_curriculum_changes_games_that_begin_from_then_on():
    vec, observation, _ = started(stage="s1", omission=1.0)
    assert (observation["manual"].any(-1).sum(1) == 1).all()
    before = observation["manual"].copy()
    vec.adjust(omission=0.0)
    begun = np.zeros(GAMES, bool)
    while not begun.all():
        observation, *_, info = vec.step(np.zeros((GAMES, 1), int))
        begun |= info.done
        assert np.array_equal(observation["manual"][~begun], before[~begun])
    assert observation["manual"].any(-1).all()


@pytest.mark.parametrize("agent", ["emma", "sir", "txt2pi", "relread"])
def test_networks_read_manuals_with_empty_rows(agent):
    vec, observation, info = started(stage="s3", games=4, omission=1.0)
    policy = make_policy(agent, vec.spec)
    batch = Player(policy, vec.spec, 4).batch(shown_to(0, observation, vec.spec, info.document), np.ones(4, bool))
    output = policy(batch)
    assert output.logits.isfinite().all()
    assert output.value.isfinite().all()
