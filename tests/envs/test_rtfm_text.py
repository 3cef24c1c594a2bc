"""The text says what the world does, exactly and completely."""

from collections import Counter

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.games import rock_paper_scissors_vocabulary, rtfm_vocabulary
from magrounding.envs.rtfm.ontology import TRAINING, UNSEEN
from magrounding.envs.rtfm.sentences import template_set
from magrounding.envs.rtfm.tasks import TASKS
from tests.envs.reference_rtfm import ELEMENTS, PATTERNS, TEAMS, TEMPLATES, read_document
from tests.envs.rtfm_games import STAGES, being, counts, document_of

SPLITS = ("train", "eval", "eval_new", "eval_paraphrase")
GAMES = 150


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", TASKS)
def test_every_document_can_be_read_back_and_agrees_with_the_world(task, split):
    vec = mg.make_vec("rtfm", GAMES, task=task, split=split)
    observation, _ = vec.reset(seed=50)
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


@pytest.mark.parametrize("task", TASKS)
def test_held_out_sentences_are_in_eval_paraphrase_and_nowhere_else(task):
    language = TASKS[task].language
    seen, held_out = PATTERNS[template_set(language, False)], PATTERNS[template_set(language, True)]
    for split in SPLITS:
        own, foreign = (held_out, seen) if split == "eval_paraphrase" else (seen, held_out)
        vec = mg.make_vec("rtfm", 40, task=task, split=split)
        vec.reset(seed=8)
        for b in range(40):
            text = vec.world.text(b)
            for sentence in text["manual"]:
                assert any(p.fullmatch(sentence) for kind in ("modifier", "team") for p in own[kind])
                assert not any(p.fullmatch(sentence) for kind in ("modifier", "team") for p in foreign[kind])
            assert any(p.fullmatch(text["goal"]) for p in own["goal"])
            assert not any(p.fullmatch(text["goal"]) for p in foreign["goal"])


def test_plain_text_word_by_word():
    vec = mg.make_vec("rtfm", 60, task="group")
    vec.reset(seed=1)
    for b in range(60):
        document, text = document_of(vec.world, b), vec.world.text(b)
        expected = []
        for verb, names, meaning in (("beat", ELEMENTS, document.beats), ("are", TEAMS, document.team_of)):
            for name in names:
                members = sorted(member for member in meaning if meaning[member] == name)
                expected.append(f"{' , '.join(members)} {verb} {name} .")
        assert sorted(text["manual"]) == sorted(expected)
        assert text["goal"] == f"defeat the {document.target_team}"


@pytest.mark.parametrize("split", SPLITS)
def test_all_templates_are_used(split):
    vec = mg.make_vec("rtfm", 600, task="nl", split=split)
    vec.reset(seed=1)
    documents = [document_of(vec.world, b) for b in range(600)]
    used = Counter(statement for document in documents for statement in document.statements)
    assert set(used) == {("modifier", k) for k in range(12)} | {("team", k) for k in range(10)}
    assert {document.goal_template for document in documents} == set(range(10))


def longest(kind, group):
    """Words of the longest sentence of a kind, over both sets of templates."""
    members = {"modifier": 2 if group else 1, "team": 3 if group else 1, "goal": 1}[kind]
    name = {"modifier": 1, "team": 4, "goal": 4}[kind]
    lengths = []
    for language in ("language", "language_held_out"):
        for template in TEMPLATES[language][kind]:
            blanks = template.count("{")
            extra = (2 * members - 1 if kind != "goal" else 0) + name
            lengths.append(len(template.split()) - blanks + extra)
    return max(lengths)


@pytest.mark.parametrize("task", ["simple_nl", "nl"])
def test_rows_are_as_long_as_the_longest_sentence_and_the_same_in_every_split(task):
    shapes = set()
    for split in SPLITS:
        spec = mg.make_vec("rtfm", 1, task=task, split=split).spec
        shapes.add((spec["manual"].shape, spec["goal"].shape))
    group = task == "nl"
    assert shapes == {((7, max(longest("modifier", group), longest("team", group))), (longest("goal", group),))}


def test_one_vocabulary_for_every_task_stage_and_split():
    hashes = {
        mg.make_vec(env, 1, **{option: stage}, split=split).spec.vocabulary.hash
        for env, option, stages in (("rtfm", "task", TASKS), ("ma_rtfm", "stage", STAGES))
        for stage in stages
        for split in SPLITS
    }
    assert hashes == {rtfm_vocabulary().hash}


def test_the_vocabulary_holds_every_word_of_the_world_and_of_its_templates():
    words = set("empty wall fog me ally ,".split()) | set(ELEMENTS) | {word for team in TEAMS for word in team.split()}
    for ontology in (TRAINING, UNSEEN):
        words |= {*ontology.monsters, *ontology.modifiers, *ontology.nouns}
    for kinds in PATTERNS:
        for sentences in TEMPLATES[kinds].values():
            words |= {token for sentence in sentences for token in sentence.split() if "{" not in token}
    vocabulary = rtfm_vocabulary()
    assert set(vocabulary.words[1:]) == words
    assert len(vocabulary.words) == len(words) + 1


def test_the_ontology_is_that_of_the_rules():
    assert TRAINING.monsters == tuple("wolf jaguar panther goblin bat imp shaman ghost zombie".split())
    assert TRAINING.nouns == tuple("sword axe morningstar polearm knife katana cutlass spear".split())
    assert TRAINING.modifiers == tuple(
        "grandmasters blessed shimmering gleaming fanatical mysterious soldiers arcane".split()
    )
    assert UNSEEN.monsters == tuple("tiger bear puma elf vampire gremlin witch specter robot".split())
    assert UNSEEN.nouns == tuple("sabre tomahawk sunglow".split())
    assert UNSEEN.modifiers == tuple("superstars sacred glittering shiny obsessive bizarre secret esoteric".split())


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


def test_an_unshuffled_manual_has_one_order():
    vec = mg.make_vec("rtfm", 100, task="nl", shuffle_manual=False)
    vec.reset(seed=6)
    assert len({tuple(document_of(vec.world, b).names) for b in range(100)}) == 1
    vec = mg.make_vec("rtfm", 100, task="nl")
    vec.reset(seed=6)
    assert len({tuple(document_of(vec.world, b).names) for b in range(100)}) > 80


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


def test_rock_paper_scissors_has_three_plain_statements_and_a_fixed_goal():
    vec = mg.make_vec("rock_paper_scissors", 50, task="new_edge")
    observation, _ = vec.reset(seed=0)
    assert observation["manual"].shape == (50, 3, 4)
    for b in range(50):
        sentences = [sentence.split() for sentence in vec.world.text(b)["manual"]]
        assert [s[1] for s in sentences] == ["beats"] * 3
        assert [s[3] for s in sentences] == ["."] * 3
        assert {s[0] for s in sentences} == {s[2] for s in sentences} <= set("abcdefghijklmnopqrst")
    assert {vec.world.text(b)["goal"] for b in range(50)} == {"slay the dragon"}
    letters = {mg.make_vec("rock_paper_scissors", 1, task=t).spec.vocabulary.hash for t in ("permutation", "new_node")}
    assert letters == {rock_paper_scissors_vocabulary().hash}
