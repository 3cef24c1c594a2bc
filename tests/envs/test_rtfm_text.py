"""The text says what the world does, exactly and completely."""

from collections import Counter

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.games import rtfm_vocabulary
from magrounding.envs.rtfm.ontology import TASKS
from tests.envs.reference_rtfm import ELEMENTS, TEAMS, read_document
from tests.envs.rtfm_games import STAGES, being, counts, document_of

SPLITS = ("train", "eval", "eval_new", "eval_paraphrase")
GAMES = 60


@pytest.mark.parametrize(
    ("task", "split"), [*((task, "train") for task in TASKS), *(("nl", each) for each in SPLITS[1:])]
)
def test_every_document_can_be_read_back_and_agrees_with_the_world(task, split):
    vec = mg.make_vec("rtfm", GAMES, task=task, split=split)
    observation, _ = vec.reset(seed=50)
    assert vec.spec.vocabulary.hash == rtfm_vocabulary().hash  # one for all
    world, decode = vec.world, vec.spec.vocabulary.decode
    n, m, i = counts(world)
    group = TASKS[task].group
    for b in range(GAMES):
        document = document_of(world, b)  # fails where a sentence does not fit exactly one template of the split's set
        assert Counter(kind for kind, _ in document.statements) == {"modifier": 4, "team": 3}
        assert sorted(document.names) == sorted((*ELEMENTS, *TEAMS))
        assert document.lists == [sorted(members) for members in document.lists]
        sizes = {"modifier": 2 if group else 1, "team": 3 if group else 1}
        assert [len(x) for x in document.lists] == [sizes[kind] for kind, _ in document.statements]
        monsters = [being(world, b, slot).words for slot in range(n, n + m)]
        friends = [words for words in monsters if document.team_of[words[1]] == document.target_team]
        assert len(friends) == 1
        beaten = [document.beats[being(world, b, slot).words[0]] for slot in range(n + m, n + m + i)]
        assert beaten.count(friends[0][0]) == 1
        text = world.text(b)
        assert text["manual"] == [decode(row) for row in observation["manual"][b]]
        assert text["goal"] == decode(observation["goal"][b])


def test_documents_are_fixed_for_the_episode_and_change_with_the_next():
    vec = mg.make_vec("ma_rtfm", 64, stage="s5", agents=2, size=6, copy=True)
    (observation, info), rng = vec.reset(seed=2), np.random.default_rng(1)
    keys, texts = info["document"], {}
    for _ in range(40):
        before = observation
        observation, *_, info = vec.step(rng.integers(0, 5, (64, 2)))
        kept = ~info["done"]
        for key in ("manual", "goal"):
            assert (observation[key][kept] == before[key][kept]).all()
            assert (info["final_observation"][key] == before[key][info["final_rows"]]).all()
        assert ((info["document"] == keys) == kept).all()
        keys = info["document"]
        for b in range(64):
            text = observation["manual"][b].tobytes() + observation["goal"][b].tobytes()
            assert texts.setdefault(int(keys[b]), text) == text
    assert len(set(texts.values())) > 0.9 * len(texts) > 64


def test_resample_text_says_the_same_in_other_words_every_step():
    vec = mg.make_vec("rtfm", 32, task="nl", resample_text=True, size=10, copy=True)
    _, info = vec.reset(seed=6)
    for _ in range(6):
        documents, keys = [document_of(vec.world, b) for b in range(32)], info["document"]
        *_, info = vec.step(np.zeros((32, 1), np.int64))
        assert (info["document"] != keys).all()
        changed = 0
        for b in np.flatnonzero(~info["done"]):
            now, was = document_of(vec.world, b), documents[b]
            assert (now.beats, now.team_of, now.target_team) == (was.beats, was.team_of, was.target_team)
            assert now.names == was.names  # the order of the rows stays
            changed += now.statements != was.statements
        assert changed > 0
        for k, b in enumerate(info["final_rows"]):
            # The last observation is told in the words of its own step, not of the step before.
            lines = [vec.spec.vocabulary.decode(line) for line in info["final_observation"]["manual"][k]]
            goal = vec.spec.vocabulary.decode(info["final_observation"]["goal"][k])
            last = read_document(lines, goal, "language")
            assert (last.beats, last.team_of) == (documents[b].beats, documents[b].team_of)


def test_configurations_do_not_share_document_keys():
    """One cache of encodings may see several worlds: equal keys must mean equal texts across them."""
    texts = {}
    for split in SPLITS:
        for stage in STAGES:
            vec = mg.make_vec("ma_rtfm", 50, stage=stage, agents=2, split=split)
            observation, info = vec.reset(seed=0)
            for b, key in enumerate(info["document"].tolist()):
                text = (vec.spec.vocabulary.decode(observation["goal"][b]), str(vec.world.text(b)["manual"]))
                assert texts.setdefault(key, text) == text
    assert len(texts) == 50 * len(SPLITS) * len(STAGES)
