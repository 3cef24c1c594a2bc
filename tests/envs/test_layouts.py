"""Layouts put the same sentences into other rows, and change nothing else."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger.arrays import ENTITIES, MOVEMENTS, ROLES
from magrounding.vocabulary import without_punctuation
from tests.envs.people_corpus import small_corpus, write_corpus
from tests.envs.test_equality import record

GAMES = 60
RTFM = [
    ("rtfm", {"task": "nl", "split": "eval_paraphrase"}),
    ("rtfm", {"task": "simple_stationary", "shuffle_manual": False}),
    ("rtfm", {"task": "nl", "manual": "reassigned", "resample_text": True, "max_cycles": 3}),
    ("ma_rtfm", {"stage": "s5", "agents": 2, "split": "eval_new"}),
]
MESSENGER = [
    ("messenger", {"stage": "s1", "split": "train_mc"}),
    ("messenger", {"stage": "s3", "split": "test"}),
    ("messenger", {"stage": "s2", "split": "test_seen_dynamics", "manual": "reassigned"}),
    ("ma_messenger", {"stage": "s4", "agents": 1, "split": "val"}),
    ("ma_messenger", {"stage": "s4", "agents": 3, "split": "train_sc", "manual": "reassigned"}),
]


def manuals(env, options, layout):
    """The manuals of all games as strings, after some steps, and the shape of a manual."""
    vec = mg.make_vec(env, GAMES, layout=layout, **options)
    vec.reset(seed=4)
    for _ in range(6):
        observation, *_, info = vec.step(np.ones((GAMES, vec.num_agents), np.int64))
        for ids in (observation["manual"], info.final_observation["manual"]):
            assert ids.shape[1:] == mg.ENVS[env].describe(layout=layout, **options)["manual"].shape
            shown = ids != 0
            assert (shown[..., 1:] <= shown[..., :-1]).all(), "padding is behind the text, nothing is left of the last"
    return [vec.world.text(b)["manual"] for b in range(GAMES)], ids.shape[1:]


def check_layouts(env, options):
    told = {layout: manuals(env, options, layout) for layout in mg.ENVS[env].layouts}
    joined = (told[layout][0] for layout in ("statements", "paragraph", "stream"))
    for statements, paragraph, stream in zip(*joined, strict=True):
        assert paragraph == [" ".join(statements)]
        assert stream == [without_punctuation(paragraph[0])] != paragraph
    return told


@pytest.mark.parametrize(("env", "options"), RTFM, ids=str)
def test_rows_of_several_sentences_have_them_in_their_order(env, options):
    told, triples = check_layouts(env, options), set()
    for statements, merged in zip(told["statements"][0], told["merged"][0], strict=True):
        assert " ".join(merged) == " ".join(statements)
        counts = [sum(row.count(s) for s in statements) for row in merged]
        assert sorted(counts) == [2, 2, 3]
        triples.add(counts.index(3))
    assert triples == {0, 1, 2}  # the row of three is drawn


@pytest.mark.parametrize(("env", "options"), MESSENGER, ids=str)
def test_a_row_is_as_wide_as_all_descriptions_together(env, options):
    told = check_layouts(env, options)
    assert {len(statements) for statements in told["statements"][0]} <= {3, 6}
    (rows, length), wide, (one, narrow) = (shape for _, shape in told.values())
    assert wide == (1, rows * length)
    assert one == 1
    assert narrow < rows * length


@pytest.mark.parametrize("manual", ["true", "reassigned"])
def test_a_corpus_keeps_its_own_punctuation(tmp_path, manual):
    folder = write_corpus(tmp_path, small_corpus(whole=manual == "reassigned"))
    told = check_layouts("messenger", {"stage": "s2", "corpus": folder, "manual": manual})
    assert all(text[0].startswith("in train , the ") and "!" in text[0] for text in told["paragraph"][0])


def test_a_sentence_of_nothing_but_punctuation_is_silent_in_a_stream(tmp_path):
    cells = {movement: ["?!"] for movement in MOVEMENTS}
    entities = {name: dict.fromkeys(ROLES, cells) for name in ENTITIES}
    folder = write_corpus(tmp_path, dict.fromkeys(("train", "val", "test"), entities))
    assert manuals("messenger", {"corpus": folder}, "paragraph")[0][0] == ["? ! ? ! ? !"]
    silent, shape = manuals("messenger", {"corpus": folder}, "stream")
    assert shape == (1, 3)
    assert silent == [[""]] * GAMES


@pytest.mark.parametrize("layout", mg.ENVS["ma_rtfm"].layouts)
def test_shapes_are_those_of_the_description_in_every_split(layout):
    shapes = set()
    for split in ("train", "eval_new", "eval_paraphrase"):
        vec = mg.make_vec("ma_rtfm", 200, stage="s5", layout=layout, split=split)
        shapes.add(shape := vec.spec["manual"].shape)
        longest = (vec.reset(seed=0)[0]["manual"] != 0).sum(axis=-1).max()
        assert 0.8 * shape[1] < longest <= shape[1]
    assert len(shapes) == 1
    assert shapes.pop()[0] == {"statements": 7, "merged": 3, "paragraph": 1, "stream": 1}[layout]


OTHERS = [("ma_rtfm", {"stage": "s5", "agents": 2, "size": 6}), MESSENGER[1], MESSENGER[4]]
IN_OTHER_ROWS = [(*game, layout) for game in OTHERS for layout in mg.ENVS[game[0]].layouts[1:]]


@pytest.mark.parametrize(("env", "options", "layout"), IN_OTHER_ROWS, ids=str)
def test_nothing_but_the_manual_differs(env, options, layout):
    usual, other = (record(mg.make_vec(env, 24, layout=each, **options), 7, 40) for each in ("statements", layout))
    for before, after in zip(usual, other, strict=True):
        assert before.keys() == after.keys()
        for key in before.keys() - {"manual", "final manual", "document"}:
            np.testing.assert_array_equal(before[key], after[key], err_msg=key)
        if "document" in before:
            assert not np.isin(before["document"], after["document"]).any(), "a cache must not take one for the other"
    assert any(frame["done"].any() for frame in usual[1:])
