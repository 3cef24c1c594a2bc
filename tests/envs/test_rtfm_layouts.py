"""Layouts put the same sentences into other rows, and change nothing else."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.text import LAYOUTS
from tests.envs.test_equality import record

GAMES = 60
WORLDS = [
    ("rtfm", {"task": "nl", "split": "eval_paraphrase"}),
    ("rtfm", {"task": "simple_stationary", "shuffle_manual": False}),
    ("rtfm", {"task": "nl", "manual": "reassigned", "resample_text": True, "max_cycles": 3}),
    ("ma_rtfm", {"stage": "s5", "agents": 2, "split": "eval_new"}),
]


def manuals(env, options, layout, steps=2):
    """The manuals of all games as strings, after some steps."""
    vec = mg.make_vec(env, GAMES, layout=layout, **options)
    observation, _ = vec.reset(seed=4)
    for _ in range(steps):
        observation, *_ = vec.step(np.zeros((GAMES, vec.num_agents), np.int64))
    assert observation["manual"].shape == (GAMES, *vec.spec["manual"].shape)
    return [vec.world.text(b)["manual"] for b in range(GAMES)]


@pytest.mark.parametrize(("env", "options"), WORLDS, ids=str)
def test_every_layout_has_the_sentences_of_statements_in_their_order(env, options):
    told = {layout: manuals(env, options, layout) for layout in LAYOUTS}
    triples = set()
    for statements, merged, paragraph, stream in zip(*(told[layout] for layout in LAYOUTS), strict=True):
        assert paragraph == [" ".join(statements)]
        assert stream == [" ".join(word for word in paragraph[0].split() if word not in (",", ".", "?"))]
        assert " ".join(merged) == paragraph[0]
        counts = [sum(" ".join(rows).count(s) for s in statements) for rows in ([row] for row in merged)]
        assert sorted(counts) == [2, 2, 3]
        triples.add(counts.index(3))
    assert triples == {0, 1, 2}  # the row of three is drawn


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_are_those_of_the_description_in_every_split(layout):
    shapes = set()
    for split in ("train", "eval_new", "eval_paraphrase"):
        spec = mg.ENVS["ma_rtfm"].describe(stage="s5", layout=layout, split=split)
        shapes.add(spec["manual"].shape)
        vec = mg.make_vec("ma_rtfm", 200, stage="s5", layout=layout, split=split)
        longest = (vec.reset(seed=0)[0]["manual"] != 0).sum(axis=-1).max()
        assert 0.8 * spec["manual"].shape[1] < longest <= spec["manual"].shape[1]
    assert len(shapes) == 1
    assert shapes.pop()[0] == {"statements": 7, "merged": 3, "paragraph": 1, "stream": 1}[layout]


@pytest.mark.parametrize("layout", LAYOUTS[1:])
def test_nothing_but_the_manual_differs(layout):
    options = {"stage": "s5", "agents": 2, "size": 6}
    usual = record(mg.make_vec("ma_rtfm", 24, **options), 7, 30)
    other = record(mg.make_vec("ma_rtfm", 24, layout=layout, **options), 7, 30)
    for before, after in zip(usual, other, strict=True):
        for key in before.keys() - {"manual", "final manual", "document"}:
            np.testing.assert_array_equal(before[key], after[key], err_msg=key)
    assert any(frame["done"].any() for frame in usual[1:])


def test_padding_is_behind_the_text_and_nothing_is_left_of_the_last_game():
    vec = mg.make_vec("rtfm", 50, task="nl", layout="merged", size=6, max_cycles=2)
    vec.reset(seed=0)
    for _ in range(6):
        observation, *_, info = vec.step(np.zeros((50, 1), np.int64))
        for manual in (observation["manual"], info["final_observation"]["manual"]):
            shown = manual != 0
            assert (shown[..., 1:] <= shown[..., :-1]).all()
