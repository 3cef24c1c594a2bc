"""The RTFM sentences are data that people edit: these are the rules that text generator and experiments rely on."""

import itertools
import json
from importlib.resources import files

import pytest

TEMPLATES = json.loads((files("magrounding.envs.rtfm") / "data" / "templates.json").read_text(encoding="utf-8"))
SLOTS = {
    "modifier": {"{modifiers}", "{element}"},
    "team": {"{monsters}", "{team}"},
    "goal": {"{team}"},
}
SIZES = {
    "plain": {"modifier": 1, "team": 1, "goal": 1},
    "plain_held_out": {"modifier": 1, "team": 1, "goal": 1},
    "language": {"modifier": 12, "team": 10, "goal": 10},
    "language_held_out": {"modifier": 12, "team": 10, "goal": 10},
}
CASES = [(name, kind) for name, sizes in SIZES.items() for kind in sizes]
LANGUAGE_CASES = [(name, kind) for name, kind in CASES if name.startswith("language")]

# Every word that means something in the world (RTFM's own ontology, the new one, and the
# grid's words). "of" and "the" are left out: "order of the forest" is understood as a whole.
MEANINGFUL = set(
    """
    wolf jaguar panther goblin bat imp shaman ghost zombie dragon
    tiger bear puma elf vampire gremlin witch specter robot
    sword axe morningstar polearm knife katana cutlass spear sabre tomahawk sunglow
    cold fire lightning poison
    grandmasters blessed shimmering gleaming fanatical mysterious soldiers arcane
    superstars sacred glittering shiny obsessive bizarre secret esoteric
    star alliance order forest rebel enclave
    me ally empty wall fog
    """.split()
)


def sentences(*names):
    return [template for name in names for kind in TEMPLATES[name].values() for template in kind]


def without_slots(template):
    return tuple(token for token in template.split() if not token.startswith("{"))


def shapes(template, length=4):
    """Runs of `length` tokens in which every slot looks the same: what two sentences of one shape share."""
    tokens = ["<slot>" if token.startswith("{") else token for token in template.split()]
    runs = zip(*(tokens[i:] for i in range(length)), strict=False)
    return {run for run in runs if len({*run} - {"<slot>", "the", ",", "."}) > 1}


def test_the_file_has_an_origin_and_the_sets_and_sizes_that_the_rules_name():
    assert TEMPLATES["origin"].strip()
    sets = {name: kinds for name, kinds in TEMPLATES.items() if name != "origin"}
    assert {name: {kind: len(v) for kind, v in kinds.items()} for name, kinds in sets.items()} == SIZES


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_each_template_has_each_of_its_slots_once(name, kind):
    for template in TEMPLATES[name][kind]:
        slots = [token for token in template.split() if "{" in token or "}" in token]
        assert sorted(slots) == sorted(SLOTS[kind]), template


@pytest.mark.parametrize("template", sentences(*SIZES))
def test_tokens_are_lower_case_words_or_lone_punctuation_with_single_spaces(template):
    assert template == " ".join(template.split())
    for token in template.split():
        special = SLOTS["modifier"] | SLOTS["team"] | {".", ",", "?"}
        assert token in special or (token.isascii() and token.isalpha())
        assert token == token.lower()


def test_no_word_of_a_template_means_something_in_the_world():
    words = {token for template in sentences(*SIZES) for token in without_slots(template)}
    assert not words & MEANINGFUL
    # Rock-paper-scissors names its items by single letters, so no template says "a" or "i".
    assert not {word for word in words if len(word) == 1 and word.isalpha()}


def test_no_sentence_is_written_twice():
    everything = [without_slots(template) for template in sentences(*SIZES)]
    assert len(set(everything)) == len(everything)


def test_team_names_take_an_article():
    for name, kind in CASES:
        if kind in ("team", "goal") and name != "plain":
            assert all("the {team}" in template for template in TEMPLATES[name][kind])
    assert TEMPLATES["plain"] == {
        "modifier": ["{modifiers} beat {element} ."],
        "team": ["{monsters} are {team} ."],
        "goal": ["defeat the {team}"],
    }


@pytest.mark.parametrize(("name", "kind"), LANGUAGE_CASES)
def test_lengths_stay_close(name, kind):
    lengths = [len(template.split()) for template in TEMPLATES[name][kind]]
    assert min(lengths) >= 8
    assert max(lengths) <= 16
    assert len(set(lengths)) >= 4


@pytest.mark.parametrize(("name", "kind"), [case for case in LANGUAGE_CASES if case[1] != "goal"])
def test_half_of_the_templates_name_the_element_or_team_first(name, kind):
    late = {"modifier": ("{element}", "{modifiers}"), "team": ("{team}", "{monsters}")}[kind]
    first = [template.index(late[0]) < template.index(late[1]) for template in TEMPLATES[name][kind]]
    assert sum(first) * 2 == len(first)


@pytest.mark.parametrize(("name", "kind"), LANGUAGE_CASES)
def test_no_slot_has_a_position_that_gives_it_away(name, kind):
    rows = [template.split() for template in TEMPLATES[name][kind]]
    for slot in SLOTS[kind]:
        positions = [row.index(slot) for row in rows]
        assert len(set(positions)) >= 5, slot
        assert max(positions.count(p) for p in positions) <= len(rows) // 2, slot


@pytest.mark.parametrize("kind", SLOTS)
def test_held_out_sentences_have_other_shapes_and_partly_other_words(kind):
    seen, held_out = TEMPLATES["language"][kind], TEMPLATES["language_held_out"][kind]
    for a, b in itertools.product(seen, held_out):
        assert not shapes(a) & shapes(b), (a, b)
    seen_words = {token for template in seen for token in without_slots(template)}
    held_out_words = {token for template in held_out for token in without_slots(template)}
    assert len(held_out_words - seen_words) >= len(held_out_words) // 2


@pytest.mark.parametrize("members", ["gleaming", "arcane , gleaming", "arcane , gleaming , mysterious"])
def test_every_template_can_be_filled(members):
    for name, kind in CASES:
        for template in TEMPLATES[name][kind]:
            text = template.format(modifiers=members, monsters=members, element="cold", team="order of the forest")
            assert "{" not in text
            assert members in text or kind == "goal"
