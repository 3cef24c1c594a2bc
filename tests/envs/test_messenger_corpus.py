"""People's sentences: files of the authors' form load unchanged, games need what they draw and nothing else."""

import json
import re
from collections import Counter

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger.games import MaMessenger, Messenger
from magrounding.envs.messenger.manual import TEXTS, find_corpus, our_corpus
from magrounding.envs.messenger.sentences import SPLITS, needed_cells
from magrounding.errors import DataNotFound
from tests.envs.people_corpus import our_sentences, pairs_of, small_corpus, write_corpus

LINE = re.compile(r"in (\w+) , the (\w+) is (\w+) : (\w+) (?:so )*!")


def manuals(env, rows=2000, **options):
    """[(text, entity, role, movement)] of each of some games that have just begun."""
    vec = mg.make_vec(env, rows, **options)
    vec.reset(seed=3)
    return [[LINE.fullmatch(line).groups() for line in vec.world.text(b)["manual"]] for b in range(rows)]


@pytest.fixture
def own(tmp_path):
    """Sentences about the games' own pairs, and no others."""
    return write_corpus(tmp_path / "own", small_corpus())


@pytest.fixture
def whole(tmp_path):
    """Sentences about everything."""
    return write_corpus(tmp_path / "whole", small_corpus(whole=True))


@pytest.mark.parametrize(
    ("kind", "env", "stage"),
    [
        (Messenger, "messenger", "s1"),
        (Messenger, "messenger", "s3"),
        (MaMessenger, "ma_messenger", "s3"),
        (MaMessenger, "ma_messenger", "s4"),
    ],
)
@pytest.mark.parametrize("split", ["train", "test", "test_seen_dynamics"])
@pytest.mark.parametrize("manual", ["true", "reassigned"])
def test_games_draw_from_the_cells_that_they_are_said_to_need_and_from_all_of_them(
    kind, env, stage, split, manual, whole
):
    options = {"stage": stage, "split": split, "manual": manual, "corpus": whole}
    told = {cell for game in manuals(env, 4000, **options) for cell in game}
    needed = {cell for cells in needed_cells(kind(**options)) for cell in cells}
    assert told == {(SPLITS[split].text, *cell) for cell in needed}


@pytest.mark.parametrize("split", list(SPLITS))
def test_cells_that_no_game_needs_may_be_empty_or_missing(split, own):
    for env, stages in (("messenger", ("s1", "s2")), ("ma_messenger", ("s1", "s2", "s3", "s4"))):
        for stage in stages:
            for game in manuals(env, 50, stage=stage, split=split, corpus=own):
                assert {(entity, role) for _, entity, role, _ in game} <= pairs_of(SPLITS[split].text)


def test_the_first_cell_that_is_needed_and_lacking_is_named(tmp_path, own):
    with pytest.raises(DataNotFound):
        mg.make("messenger", stage="s3", split="test", corpus=own)  # what mimics a message is an enemy, and so on
    data = small_corpus()
    data["test"]["mage"]["enemy"]["unknown"] = []
    silent = write_corpus(tmp_path / "silent", data)
    mg.make("messenger", stage="s1", split="test", corpus=silent)  # one of two lists is enough there
    mg.make("messenger", stage="s2", split="val", corpus=silent)
    mg.make("ma_messenger", stage="s4", split="test", corpus=silent)
    for env, stage in (("messenger", "s2"), ("ma_messenger", "s2")):
        with pytest.raises(DataNotFound):
            mg.ENVS[env].describe(stage=stage, split="test", corpus=silent)


def test_where_nothing_moves_every_sentence_of_both_lists_is_as_likely(own):
    """One says "immovable", three are silent."""
    for env in ("messenger", "ma_messenger"):
        vec = mg.make_vec(env, 4000, stage="s1", split="test", corpus=own)
        vec.reset(seed=3)
        lines = Counter(line.partition(":")[2] for b in range(4000) for line in vec.world.text(b)["manual"])
        assert len(lines) == 4
        assert all(abs(count / lines.total() - 0.25) < 0.02 for count in lines.values())


def test_our_own_sentences_in_files_make_the_same_games(tmp_path):
    folder = write_corpus(tmp_path, our_sentences())
    assert find_corpus(folder).sentences == our_corpus().sentences
    for stage in ("s1", "s2"):
        ours, theirs = (mg.make_vec("messenger", 50, stage=stage, split="test", corpus=c) for c in (None, folder))
        (seen, info), (other, _) = ours.reset(seed=1), theirs.reset(seed=1)
        assert info is not None
        assert all(np.array_equal(seen[name], other[name]) for name in seen)


def test_a_reassigned_manual_takes_another_movement_or_another_splits_file(tmp_path, own):
    for game in manuals("messenger", 500, stage="s2", split="test", manual="reassigned", corpus=own):
        for text, entity, role, _ in game:  # a role of training, of which the file of `test` says nothing
            assert text == "train"
            assert (entity, role) in pairs_of("train")
    data = small_corpus()
    data["test"].setdefault("airplane", {})["message"] = {"fleer": ["In test, the airplane is message: fleeing !"]}
    folder = write_corpus(tmp_path / "some", data)
    lines = {
        line for g in manuals("messenger", stage="s2", split="test", manual="reassigned", corpus=folder) for line in g
    }
    assert {line for line in lines if line[1:3] == ("airplane", "message")} == {
        ("test", "airplane", "message", "fleeing")
    }
    for text in TEXTS:
        data[text].get("airplane", {}).pop("message", None)
    folder = write_corpus(tmp_path / "none", data)
    with pytest.raises(DataNotFound):
        mg.make("messenger", stage="s2", split="test", manual="reassigned", corpus=folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["mage"]["enemy"].update(chazer=[]),
        lambda d: d["mage"].update(enemy="everywhere"),
        lambda d: d["mage"]["enemy"].update(chaser=[3]),
    ],
)
def test_files_of_another_form_are_refused(tmp_path, change):
    data = small_corpus(whole=True)
    change(data["val"])
    with pytest.raises(DataNotFound):
        mg.make("messenger", corpus=write_corpus(tmp_path, data))


def test_a_folder_is_found_from_the_current_one_and_known_by_its_content(tmp_path, monkeypatch, own):
    monkeypatch.chdir(tmp_path)
    spec = mg.ENVS["messenger"].describe(corpus="own")
    digest = find_corpus(own).digest
    assert spec.source == f"corpus own, sha256 {digest}"
    assert mg.ENVS["messenger"].describe().source == "our templates"
    data = json.loads((tmp_path / "own/text_val.json").read_text())
    data["mage"]["enemy"]["unknown"].append("Beware, mage!")
    (tmp_path / "own/text_val.json").write_text(json.dumps(data))
    assert mg.ENVS["messenger"].describe(corpus="own").source != spec.source
    assert "beware" in mg.ENVS["messenger"].describe(corpus="own").words
    with pytest.raises(DataNotFound):
        mg.make("messenger", corpus="nowhere")
