"""A reassigned manual is false in every statement, and nothing else differs."""

from collections import Counter

import numpy as np
import pytest

import magrounding as mg
from tests.envs.rtfm_games import document_of
from tests.envs.test_equality import record

MONSTERS = [
    ("rtfm", {"task": "simple_stationary_single_item"}),
    ("rtfm", {"task": "nl", "resample_text": True, "max_cycles": 6}),
    ("rtfm", {"task": "group", "shuffle_manual": False}),
    ("ma_rtfm", {"stage": "s4", "agents": 3, "split": "eval_new"}),
    ("ma_rtfm", {"stage": "s5", "agents": 2, "split": "eval_paraphrase"}),
]
LETTERS = [
    ("rock_paper_scissors", {"task": "permutation"}),
    ("rock_paper_scissors", {"task": "new_node", "split": "eval", "shuffle_manual": False}),
]
TEXT_KEYS = ("manual", "final manual", "document")
GAMES = 100


def both(env, options, games=GAMES, seed=50):
    """Vector envs with the true and with the reassigned manual, at the start of the same games."""
    pair = [mg.make_vec(env, games, manual=manual, **options) for manual in ("true", "reassigned")]
    for vec in pair:
        vec.reset(seed=seed)
    return pair


@pytest.mark.parametrize(("env", "options"), MONSTERS, ids=str)
def test_every_team_and_every_element_is_given_the_members_of_another(env, options):
    truth, lie = both(env, options)
    for b in range(GAMES):
        true, told = document_of(truth.world, b), document_of(lie.world, b)
        # The goal, the sentences and the names they are about are the same, in the same order.
        assert truth.world.text(b)["goal"] == lie.world.text(b)["goal"]
        assert (told.target_team, told.goal_template) == (true.target_team, true.goal_template)
        assert (told.statements, told.names) == (true.statements, true.names)
        assert sorted(told.lists) == sorted(true.lists)
        for said, fact in ((told.beats, true.beats), (told.team_of, true.team_of)):
            assert said.keys() == fact.keys()
            assert [word for word in fact if said[word] == fact[word]] == []


@pytest.mark.parametrize(("env", "options"), LETTERS, ids=str)
def test_every_letter_is_beaten_by_the_one_it_beats(env, options):
    truth, lie = both(env, options)
    for b in range(GAMES):
        true, told = document_of(truth.world, b).beats, document_of(lie.world, b).beats
        assert told == {loser: winner for winner, loser in true.items()}
        lines = [sentence.split() for sentence in truth.world.text(b)["manual"]]
        assert lie.world.text(b)["manual"] == [f"{loser} beats {winner} ." for winner, _, loser, _ in lines]


@pytest.mark.parametrize(("env", "options"), MONSTERS + LETTERS, ids=str)
def test_the_same_games_are_told_in_the_same_words(env, options):
    truth, lie = (record(mg.make_vec(env, 32, manual=manual, **options), 7, 30) for manual in ("true", "reassigned"))
    for true, told in zip(truth, lie, strict=True):
        for key in true:
            if key not in TEXT_KEYS:
                np.testing.assert_array_equal(true[key], told[key], err_msg=key)
        for key in ("manual", "final manual"):
            if key in true:
                words = (np.sort(frame[key].reshape(32, -1), axis=1) for frame in (true, told))
                np.testing.assert_array_equal(*words)
        assert (true["manual"] != told["manual"]).any(axis=(1, 2)).all()
    assert any(frame["done"].any() for frame in truth[1:])


def test_all_exchanges_are_drawn_alike():
    """One exchange for all games could be learnt, and undone."""
    truth, lie = both("rtfm", {"task": "simple"}, games=1200)
    exchanges = Counter()
    for b in range(1200):
        true, told = document_of(truth.world, b), document_of(lie.world, b)
        shifts = []
        for said, fact in ((told.beats, true.beats), (told.team_of, true.team_of)):
            names = sorted(set(fact.values()))
            shifts += [{(names.index(fact[word]) - names.index(said[word])) % len(names) for word in fact}]
        exchanges[tuple(shift for (shift,) in shifts)] += 1
    assert set(exchanges) == {(e, t) for e in (1, 2, 3) for t in (1, 2)}
    assert min(exchanges.values()) > 150  # 200 expected


@pytest.mark.parametrize(("env", "options"), MONSTERS + LETTERS, ids=str)
def test_true_and_reassigned_documents_have_keys_of_their_own(env, options):
    truth, lie = both(env, options)
    assert not set(truth.world.out.document.tolist()) & set(lie.world.out.document.tolist())
    assert len(set(lie.world.out.document.tolist())) == GAMES
