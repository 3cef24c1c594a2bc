"""MESSENGER's splits and manuals: what is held out is held out, and the text says what the world does."""

import re
from functools import cache

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger.arrays import ENTITIES, FIRST_SYMBOL, KIND, MOVEMENT, MOVEMENTS, ROLE, ROLES
from magrounding.envs.messenger.manual import CELLS, TEXTS, our_corpus
from magrounding.envs.messenger.sentences import SPLITS, triples
from magrounding.errors import DataNotFound
from tests.envs.people_corpus import our_sentences, write_corpus


def games(split, rows=3000, env="messenger", **options):
    """A batch that has just begun, and its entities."""
    vec = mg.make_vec(env, rows, split=split, copy=True, **options)
    observation, _ = vec.reset(seed=7)
    return vec, observation, vec.world._games.entities


def played(split):
    """All (enemy, message, goal) triples of 3,000 games."""
    _, _, entities = games(split, stage="s2")
    return {tuple(row) for row in entities[:, 1:4, KIND].tolist()}


def test_counts_of_triples_and_that_games_use_them_all():
    counts = {name: len(triples(name)) for name in ("many", "single", "val", "test")}
    assert counts == {"many": 40, "single": 4, "val": 32, "test": 32}
    for split, parts in (("train", ("many", "single")), ("train_mc", ("many",)), ("train_sc", ("single",))):
        assert played(split) == {tuple(t) for part in parts for t in triples(part).tolist()}
    assert played("val") == set(map(tuple, triples("val").tolist()))
    assert played("test") == played("test_seen_dynamics") == set(map(tuple, triples("test").tolist()))
    _, _, entities = games("train", stage="s2")
    single = set(map(tuple, triples("single").tolist()))
    assert 0.22 < np.mean([tuple(row) in single for row in entities[:, 1:4, KIND].tolist()]) < 0.28


def test_the_share_of_fixed_roles_is_adjustable_and_names_other_documents():
    vec, _, entities = games("train", stage="s2", fixed_roles=0.0)
    assert {tuple(row) for row in entities[:, 1:4, KIND].tolist()} == set(map(tuple, triples("many").tolist()))
    usual, _, _ = games("train", stage="s2")
    vec.adjust(fixed_roles=1.0)
    _, never = vec.reset(seed=7)
    assert {tuple(row) for row in entities[:, 1:4, KIND].tolist()} == set(map(tuple, triples("single").tolist()))
    _, often = usual.reset(seed=7)
    same = (usual.world._games.entities == entities).all((1, 2))
    assert same.any()
    assert ((never.document == often.document) == same).all()


def test_no_role_of_an_entity_is_both_trained_and_held_out():
    def pairs(*names):
        return {(kind, role) for name in names for triple in triples(name).tolist() for role, kind in enumerate(triple)}

    assert not pairs("many", "single") & pairs("val", "test")
    assert pairs("val") == pairs("test")
    assert not set(map(tuple, triples("val").tolist())) & set(map(tuple, triples("test").tolist()))


def test_no_sentence_is_shared_and_there_are_as_many_as_the_original_has():
    corpus = our_corpus().sentences
    sentences = {text: {s for cell in CELLS for s in corpus[text][cell]} for text in TEXTS}
    assert not sentences["train"] & (sentences["val"] | sentences["test"])
    assert not sentences["val"] & sentences["test"]
    a_cell = {s for text in TEXTS for movement in MOVEMENTS for s in corpus[text]["mage", "enemy", movement]}
    assert len(a_cell) >= 2214
    assert all(re.fullmatch(r"(([a-z]+|[.,;!?:-]) )+[.!?]", s) for text in TEXTS for s in sentences[text])


@cache
def _cells(text):
    """Sentence → (entity, role, movement)."""
    return {sentence: cell for cell in CELLS for sentence in our_corpus().sentences[text][cell]}


def _read(text, split):
    """(entity, role, movement) of each sentence, looked up in the corpus."""
    return [_cells(SPLITS[split].text)[sentence] for sentence in text]


@pytest.mark.parametrize("split", list(SPLITS))
@pytest.mark.parametrize("stage", ["s1", "s2", "s3"])
def test_the_manual_says_what_the_game_is(split, stage):
    vec, observation, entities = games(split, rows=200, stage=stage)
    silent, orders = 0, set()
    for b in range(200):
        told = _read(vec.world.text(b)["manual"], split)
        true = [(ENTITIES[e[KIND]], ROLES[e[ROLE]], MOVEMENTS[e[MOVEMENT]]) for e in entities[b, 1:]]
        silent += sum(movement == "unknown" for *_, movement in told)
        orders.add(tuple(role for _, role, _ in told))
        if stage == "s3":
            false = [cell for cell in told if cell not in true]
            assert len(told) == 6
            assert len(false) == 1
            (entity, role, movement), enemy = false[0], true[0]
            assert entity == enemy[0]
            assert role != enemy[1]
            assert movement != enemy[2]
        else:
            said = {(entity, role) for entity, role, _ in told}
            assert said == {(entity, role) for entity, role, _ in true}
            assert all(cell in true for cell in told if cell[2] != "unknown")
        shown = set(np.unique(observation["grid"][b])) - {0, 15, 16}
        assert shown == {FIRST_SYMBOL + e[KIND] for e in entities[b, 1:]}
    expected = {"s1": 0.5, "s2": 0.15, "s3": 0}[stage] * 600
    assert abs(silent - expected) <= 60
    assert len(orders) >= 6


def test_a_reassigned_manual_has_no_true_role():
    vec, _, entities = games("test", rows=200, stage="s2", manual="reassigned")
    for b in range(200):
        roles = {ENTITIES[e[KIND]]: ROLES[e[ROLE]] for e in entities[b, 1:]}
        told = {entity: role for entity, role, _ in _read(vec.world.text(b)["manual"], "test")}
        assert told.keys() == roles.keys()
        assert sorted(told.values()) == sorted(roles.values())
        assert all(told[entity] != role for entity, role in roles.items())


def test_stages_that_wander_say_nothing_of_movement():
    vec, _, _ = games("train", rows=50, env="ma_messenger", stage="s3")
    assert {movement for b in range(50) for *_, movement in _read(vec.world.text(b)["manual"], "train")} == {"unknown"}
    vec, _, _ = games("train", rows=50, env="ma_messenger", stage="s4")
    assert "unknown" not in {m for b in range(50) for *_, m in _read(vec.world.text(b)["manual"], "train")}


def test_a_corpus_whose_files_are_missing_or_damaged_is_refused(tmp_path):
    folder = write_corpus(tmp_path, our_sentences())
    (tmp_path / "text_val.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataNotFound):
        mg.make("messenger", corpus=folder)
    (tmp_path / "text_train.json").unlink()
    with pytest.raises(DataNotFound):
        mg.make("messenger", corpus=folder)


@pytest.mark.parametrize("options", [{"stage": "s3"}, {"env": "ma_messenger", "stage": "s4", "agents": 3}])
def test_game_id_tells_symbols_instead_of_sentences(options):
    """Enemy, message and goal in this order; nothing else of the game is changed, and the default tells no symbol."""
    vec, observation, entities = games("train", rows=200, game_id=True, **options)
    n = vec.num_agents
    assert observation["manual"].shape == (200, 1, 3)
    assert (observation["manual"][:, 0] == FIRST_SYMBOL + entities[:, [n, n + 1, 2 * n + 1], KIND]).all()
    _, usual, same = games("train", rows=200, **options)
    assert (same == entities).all()
    assert (usual["grid"] == observation["grid"]).all()
    assert (usual["manual"].max(2) > max(observation["manual"].max(), 18)).all()
    _, wrong, _ = games("train", rows=200, game_id=True, manual="reassigned", **options)
    assert (np.sort(wrong["manual"]) == np.sort(observation["manual"])).all()
    assert (wrong["manual"] != observation["manual"]).all()
