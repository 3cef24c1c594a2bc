"""Every manual's claims, read from its words by their spans, are those of the game, in any layout and construction."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.arrays import ELEMENT_DIVISION, OBJECT, POLARITY, RELATION, SUBJECT, TEAM_DIVISION
from magrounding.envs.rtfm.constructions import CONSTRUCTIONS, STATED
from magrounding.envs.rtfm.facts import fact_accuracy
from magrounding.envs.rtfm.ontology import ELEMENTS, TEAMS, TRAINING, UNSEEN
from magrounding.envs.rtfm.text import LAYOUTS
from tests.envs.test_rtfm_constructions import HELD_OUT
from tests.full import in_full

GAMES = in_full(250, 50)


def truth(world, row):
    """{(relation, subject): object} of the game, from its state."""
    words = UNSEEN if world.game.split == "eval_new" else TRAINING
    scalars, tables = world._games.scalars[row], world._tables
    found = {}
    for relation, division, members, names in (
        ("beats", tables.elements[scalars[ELEMENT_DIVISION]], words.modifiers, ELEMENTS),
        ("belongs to", tables.teams[scalars[TEAM_DIVISION]], words.monsters, TEAMS),
    ):
        found |= {(relation, members[m]): names[g] for g, listed in enumerate(division) for m in listed}
    return found


def read_spans(world, row):
    """[(relation, subject, object, polarity)] in the words that the spans name in the text on show."""
    decode, manual = world.spec.vocabulary.decode, world.observation["manual"][row]
    found = []
    for fact in world.facts(row):
        subject, name = (
            decode(manual[line, first : last + 1]) for line, first, last in (fact.subject_span, fact.object_span)
        )
        assert (subject, name) == (fact.subject, fact.object)
        found.append((fact.relation, subject, name, fact.polarity))
    return found


def check(options, env="ma_rtfm", games=GAMES):
    vec = mg.make_vec(env, games, **options)
    vec.reset(seed=11)
    polarities = set()
    for b in range(games):
        claims, facts = read_spans(vec.world, b), truth(vec.world, b)
        said = {(relation, subject): name for relation, subject, name, polarity in claims if polarity == "said"}
        assert said == facts
        assert sum(polarity == "said" for *_, polarity in claims) == len(facts)
        for relation, subject, name, polarity in claims:
            if polarity != "said":
                assert facts[relation, subject] != name
        polarities |= {polarity for *_, polarity in claims}
    return polarities


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("split", ["train", "eval_new", "eval_construction", "eval_minimal"])
def test_spans_tell_the_facts_of_the_game_with_all_constructions(layout, split):
    wanted = {"said", "denied", "retracted"}
    assert check({"stage": "s6", "agents": 2, "layout": layout, "split": split}) == wanted


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_spans_tell_the_facts_of_the_game_with_each_construction(name):
    split = "eval_construction" if name in HELD_OUT else "train"
    told = {"not_but": {"said", "denied"}, "exception": {"said", "denied"}, "retraction": {"said", "retracted"}}
    options = {"stage": "s5", "agents": 2, "layout": "stream", "constructions": name, "split": split}
    assert check(options, games=50) == told.get(name, {"said"})


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("env", "options"),
    [
        ("rtfm", {"task": "nl", "split": "eval_paraphrase"}),
        ("rtfm", {"task": "simple", "shuffle_manual": False}),
        ("rtfm", {"task": "nl", "resample_text": True}),
    ],
    ids=str,
)
def test_spans_tell_the_facts_of_plain_statements(env, options, layout):
    assert check({**options, "layout": layout}, env, 60) == {"said"}


def test_spans_tell_what_a_reassigned_manual_says():
    vec = mg.make_vec("ma_rtfm", 50, stage="s6", manual="reassigned")
    vec.reset(seed=0)
    for b in range(50):
        facts = truth(vec.world, b)
        said = [claim for claim in read_spans(vec.world, b) if claim[3] == "said"]
        assert len(said) == 17
        assert all(facts[relation, subject] != name for relation, subject, name, _ in said)


def test_facts_follow_the_game_and_cost_it_nothing():
    vec = mg.make_vec("rtfm", 20, task="nl", layout="paragraph", max_cycles=2)
    vec.reset(seed=0)
    for _ in range(4):
        vec.step(np.zeros((20, 1), np.int64))
        shown = vec.world.observation["manual"].copy()
        for b in range(20):
            read_spans(vec.world, b)
        np.testing.assert_array_equal(vec.world.observation["manual"], shown)


def test_accuracy_counts_what_is_said():
    vec = mg.make_vec("ma_rtfm", 30, stage="s6")
    vec.reset(seed=0)
    table = vec.fact_table()
    believed = np.full((30, 2, 9), -1)
    said = (table[..., POLARITY] == STATED) & (table[..., RELATION] >= 0)
    games = np.nonzero(said)[0]
    believed[games, table[said][:, RELATION], table[said][:, SUBJECT]] = table[said][:, OBJECT]
    assert fact_accuracy(table, believed) == 1
    believed[:, 1] = 0  # all monsters in one team: a third is right
    assert fact_accuracy(table, believed) == pytest.approx((8 + 3) / 17)
