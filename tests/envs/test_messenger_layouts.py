"""Layouts of MESSENGER put the same descriptions into one row, and change nothing else."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger.arrays import ENTITIES
from magrounding.envs.messenger.manual import LAYOUTS, without_punctuation
from tests.envs.people_corpus import small_corpus, write_corpus
from tests.envs.test_equality import record

GAMES = 60
WORLDS = [
    ("messenger", {"stage": "s1", "split": "train_mc"}),
    ("messenger", {"stage": "s3", "split": "test"}),
    ("messenger", {"stage": "s2", "split": "test_seen_dynamics", "manual": "reassigned"}),
    ("ma_messenger", {"stage": "s4", "agents": 1, "split": "val"}),
    ("ma_messenger", {"stage": "s4", "agents": 3, "split": "train_sc", "manual": "reassigned"}),
]


def manuals(env, options, layout, steps=5):
    """The manuals of all games as strings, after some steps, and the shape of their array."""
    vec = mg.make_vec(env, GAMES, layout=layout, **options)
    vec.reset(seed=4)
    for _ in range(steps):
        observation, *_ = vec.step(np.ones((GAMES, vec.num_agents), np.int64))
    return [vec.world.text(b)["manual"] for b in range(GAMES)], observation["manual"]


def check_layouts(env, options):
    told = {layout: manuals(env, options, layout) for layout in LAYOUTS}
    for statements, paragraph, stream in zip(*(told[layout][0] for layout in LAYOUTS), strict=True):
        assert len(statements) in (3, 6)
        assert paragraph == [" ".join(statements)]
        assert stream == [without_punctuation(paragraph[0])] != paragraph
    for layout, (_, ids) in told.items():
        spec = mg.ENVS[env].describe(layout=layout, **options)
        assert ids.shape == (GAMES, *spec["manual"].shape)
        shown = ids != 0
        assert (shown[..., 1:] <= shown[..., :-1]).all(), "padding is behind the text, and nothing is left of the last"
    rows, (one, wide), (single, narrow) = (ids.shape[1:] for _, ids in told.values())
    assert (one, wide) == (1, rows[0] * rows[1]), "a row is as wide as all descriptions together"
    assert single == 1
    assert narrow < wide
    return told


@pytest.mark.parametrize(("env", "options"), WORLDS, ids=str)
def test_every_layout_has_the_descriptions_of_statements_in_their_order(env, options):
    check_layouts(env, options)


@pytest.mark.parametrize("manual", ["true", "reassigned"])
def test_a_corpus_keeps_its_own_punctuation(tmp_path, manual):
    folder = write_corpus(tmp_path, small_corpus(whole=manual == "reassigned"))
    options = {"stage": "s2", "corpus": folder, "manual": manual}
    told = check_layouts("messenger", options)
    assert all(text[0].startswith("in train , the ") and "!" in text[0] for text in told["paragraph"][0])


def test_a_sentence_of_nothing_but_punctuation_is_silent_in_a_stream(tmp_path):
    cells = {"chasing": ["?!"], "fleeing": ["?!"], "immovable": ["?!"], "unknown": ["?!"]}
    entities = {name: dict.fromkeys(("enemy", "message", "goal"), cells) for name in ENTITIES}
    folder = write_corpus(tmp_path, dict.fromkeys(("train", "val", "test"), entities))
    assert manuals("messenger", {"corpus": folder}, "paragraph")[0][0] == ["? ! ? ! ? !"]
    _, ids = manuals("messenger", {"corpus": folder}, "stream")
    assert ids.shape[1:] == (1, 3)
    assert not ids.any()


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize(("env", "options"), [WORLDS[1], WORLDS[4]], ids=str)
def test_nothing_but_the_manual_differs(env, options, layout):
    usual = record(mg.make_vec(env, 24, **options), 7, 40)
    other = record(mg.make_vec(env, 24, layout=layout, **options), 7, 40)
    for before, after in zip(usual, other, strict=True):
        assert before.keys() == after.keys()
        for key in before.keys() - {"manual", "final manual", "document"}:
            np.testing.assert_array_equal(before[key], after[key], err_msg=key)
        if "document" in before:
            assert not np.isin(before["document"], after["document"]).any(), "a cache must not take one for the other"
    assert any(frame["done"].any() for frame in usual[1:])
