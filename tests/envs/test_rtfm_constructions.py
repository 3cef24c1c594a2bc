"""Constructions: what is held out stays out, every text can be read in one way, twins are told in the same words."""

import re
from collections import Counter, defaultdict

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm import splits
from magrounding.envs.rtfm.arrays import (
    ELEMENT,
    ELEMENT_DIVISION,
    NUM_COLUMNS,
    TARGET,
    TEAM_DIVISION,
)
from magrounding.envs.rtfm.constructions import CONSTRUCTIONS, PLAIN, words_of
from magrounding.envs.rtfm.games import prose_vocabulary, rtfm_vocabulary
from magrounding.envs.rtfm.ontology import ELEMENTS, EVAL, SPLITS, TEAMS
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.envs.rtfm.sentences import our_sentences
from magrounding.teams.evaluate import play
from tests.envs.test_equality import record
from tests.envs.test_rtfm_templates import MEANINGFUL

S6 = {"stage": "s6", "agents": 2}
HELD_OUT = ("respectively", "exception")
"""Constructions that are in `eval_construction` and in no other split."""
KEPT = [split for split in SPLITS if split != "eval_construction"]


def all_templates(paraphrase):
    """Ours of the constructions."""
    found = our_sentences(True).templates
    return [t for t in found if t.construction != PLAIN and (t.split == "eval_paraphrase") == paraphrase]


def sentences(text):
    return [sentence for sentence in text.split(" .") if sentence.strip()]


@pytest.mark.parametrize("split", KEPT)
def test_no_template_of_a_held_out_construction_is_in_another_split(split):
    told = our_sentences(True).drawn(CONSTRUCTIONS, split)
    assert {template.construction for template in told} == {PLAIN, *CONSTRUCTIONS} - {*HELD_OUT}
    # All that kernels can write: the tokens of their tables, beside names, which these words are not.
    vec = mg.make_vec("ma_rtfm", 1, **S6, split=split)
    tokens = {int(token) for token in np.unique(vec.world._tables.prose.tokens) if token > 0}
    written = {vec.spec.words[token] for token in tokens}
    seen = {word for t in told for word in t.text.split() if "{" not in word}
    assert written == seen
    assert "respectively" not in written
    assert split == "eval_paraphrase" or not written & {"except", "whom"}  # a plain paraphrase has another "except"
    assert len(vec.world._tables.prose.tokens) == len(told)


def test_paraphrases_have_templates_and_classes_of_their_own():
    ours, theirs = ({t.text for t in all_templates(paraphrase)} for paraphrase in (False, True))
    assert not ours & theirs
    trained = {t.construction for t in all_templates(True)}
    assert trained == {*CONSTRUCTIONS} - {*HELD_OUT}
    seen, held_out = our_sentences(True).classes["train"], our_sentences(True).classes["eval_paraphrase"]
    assert seen.keys() == held_out.keys()
    assert all(not {*seen[name]} & {*held_out[name]} for name in seen)


def test_words_of_constructions_come_behind_the_others_and_mean_nothing_in_the_world():
    assert prose_vocabulary().words[: len(rtfm_vocabulary())] == rtfm_vocabulary().words
    assert not MEANINGFUL & {*words_of(our_sentences(True).templates)}
    assert not MEANINGFUL & {word for c in our_sentences(True).classes.values() for of in c.values() for word in of}
    assert mg.ENVS["ma_rtfm"].describe(stage="s5", layout="stream").vocabulary.hash == rtfm_vocabulary().hash


NAMES = {"modifier": "|".join(ELEMENTS), "team": "|".join(TEAMS), "filler": ""}
MEMBERS = {"modifier": 2, "team": 3, "filler": 0}


def pattern(template, classes):
    """A template as a regular expression: slots take names of its kind, and lists of as many members as a group has."""
    found = []
    for word in template.text.split():
        slot = word.strip("{}").rstrip("2")
        if not word.startswith("{"):
            found.append(re.escape(word))
        elif slot in classes:
            found.append(f"(?:{'|'.join(classes[slot])})")
        elif slot.isupper():
            found.append(f"(?:{NAMES[template.kind]})")
        else:
            found.append(rf"\w+(?: , \w+){{{len(slot) * MEMBERS[template.kind] - 1}}}")
    return re.compile(" ".join(found))


@pytest.mark.parametrize("split", ["train", "eval_paraphrase", "eval_construction", "eval_minimal"])
def test_a_text_fits_one_template(split):
    """Rows of one text each: two templates for one row could be two ways to understand it."""
    told = our_sentences(True).drawn(CONSTRUCTIONS, split)
    classes = our_sentences(True).classes_of(split)
    patterns = {template: pattern(template, classes) for template in told}
    vec = mg.make_vec("ma_rtfm", 80, **S6, split=split, layout="statements")
    vec.reset(seed=3)
    used = Counter()
    for b in range(80):
        fits = [
            [t for t, p in patterns.items() if p.fullmatch(row)] for row in filter(None, vec.world.text(b)["manual"])
        ]
        assert all(len(templates) == 1 for templates in fits)
        pairs = [template for (template,) in fits if template.groups == 2]
        assert sum(template.groups for (template,) in fits) == 7
        if split == "eval_construction":
            assert len(pairs) == 3
            assert all(template.construction in HELD_OUT for template in pairs)
        if split == "eval_minimal":
            assert len(pairs) == 3
            assert all(template.balanced for template in pairs)
        used.update(template.construction for (template,) in fits)
    wanted = {PLAIN, *CONSTRUCTIONS} - {*HELD_OUT}
    assert used.keys() == (wanted if split != "eval_construction" else used.keys() & wanted | {*HELD_OUT})
    assert used["filler"] > 30


def test_twins_have_the_same_words_in_every_sentence_and_opposite_meaning():
    vec = mg.make_vec("ma_rtfm", 300, **S6, split="eval_minimal", layout="paragraph")
    observation, info = vec.reset(seed=40)
    world, spec = vec.world, vec.spec
    kinds = Counter()
    for key, array in observation.items():
        if key != "manual":
            np.testing.assert_array_equal(array[::2], array[1::2], err_msg=key)
    for b in range(0, 300, 2):
        one, other = (world.text(row)["manual"][0] for row in (b, b + 1))
        assert one != other
        bags = [Counter(tuple(sorted(s.split())) for s in sentences(text)) for text in (one, other)]
        assert bags[0] == bags[1]
        facts = [
            {(f.relation, f.subject): f.object for f in world.facts(row) if f.polarity == "said"} for row in (b, b + 1)
        ]
        changed = {key for key in facts[0] if facts[0][key] != facts[1][key]}
        ways = len(world._tables.elements)
        for row in (b, b + 1):
            scalars = world._games.scalars[row]
            assert splits.side(int(scalars[TEAM_DIVISION]) * ways + int(scalars[ELEMENT_DIVISION])) == EVAL
        relation = {key[0] for key in changed}
        kinds[tuple(relation)] += 1
        entities = world._games.entities[b : b + 2]
        if relation == {"beats"}:  # all modifiers of two elements: who is armed for the target is not so in the twin
            assert len(changed) == 4
            differ = entities[0, :, ELEMENT] != entities[1, :, ELEMENT]
            assert differ.sum() == 2
            assert (entities[0, :, TARGET] == entities[1, :, TARGET]).all()
        else:  # two monsters: a target of one game is the distractor of the other
            assert relation == {"belongs to"}
            assert len(changed) == 2
            assert (entities[0, :, TARGET] != entities[1, :, TARGET]).sum() == 2
        same = [column for column in range(NUM_COLUMNS) if column not in (ELEMENT, TARGET)]
        np.testing.assert_array_equal(entities[0][:, same], entities[1][:, same])
    assert min(kinds.values()) > 30
    assert len(kinds) == 2
    assert len(np.unique(info["document"])) == 300
    assert spec["manual"].shape[0] == 1


def test_a_reader_of_word_sets_is_right_on_exactly_half_of_what_twins_exchange():
    """Any answer that depends on the words of sentences, and not on their order: here that of many random tables."""
    vec = mg.make_vec("ma_rtfm", 400, **S6, split="eval_minimal")
    vec.reset(seed=0)
    rng, right = np.random.default_rng(0), defaultdict(list)
    for b in range(0, 400, 2):
        said = [
            {(f.relation, f.subject): f.object for f in vec.facts(row) if f.polarity == "said"} for row in (b, b + 1)
        ]
        bags = [
            frozenset(tuple(sorted(s.split())) for s in sentences(vec.world.text(r)["manual"][0])) for r in (b, b + 1)
        ]
        for question in said[0]:
            answers = [facts[question] for facts in said]
            if answers[0] != answers[1]:
                for reader in range(20):
                    table = {bag: answers[rng.integers(2)] for bag in bags}  # what this reader makes of a bag
                    right[reader].append([table[bag] == answer for bag, answer in zip(bags, answers, strict=True)])
    for marks in right.values():
        assert np.mean(marks) == 0.5
        assert (np.sum(marks, axis=1) == 1).all()


def test_both_twins_are_played_and_can_be_won():
    vec = mg.make_vec("ma_rtfm", 200, **S6, split="eval_minimal", max_cycles=80)
    played = play(Oracle(vec), vec, 200, seed=1000)
    assert played.won.mean() > 0.85
    vec.reset(seed=0)
    again = vec.reset()[0]["grid"]  # the next episodes of the same rows are twins, too
    np.testing.assert_array_equal(again[::2], again[1::2])


def test_s6_is_s5_but_for_its_text():
    usual, told = (record(mg.make_vec("ma_rtfm", 24, stage=stage, agents=2, size=6), 7, 30) for stage in ("s5", "s6"))
    for before, after in zip(usual, told, strict=True):
        for key in before.keys() - {"manual", "final manual", "document"}:
            np.testing.assert_array_equal(before[key], after[key], err_msg=key)


@pytest.mark.parametrize("layout", ["statements", "merged", "paragraph", "stream"])
def test_manuals_fit_their_rows_and_fill_them_nearly(layout):
    shapes = set()
    for split in SPLITS:
        vec = mg.make_vec("ma_rtfm", 400, **S6, layout=layout, split=split)
        manual = vec.reset(seed=0)[0]["manual"]
        shapes.add(manual.shape[1:])
        assert ((manual != 0)[..., 1:] <= (manual != 0)[..., :-1]).all()
        assert (manual[:, 0, 0] != 0).all()
    assert len(shapes) == 1
