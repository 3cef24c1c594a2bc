"""The RTFM sentences are data that people edit: these are the rules that text generator and experiments rely on."""

import itertools
import json
from importlib.resources import files

import pytest

TEMPLATES = json.loads((files("magrounding.envs.rtfm") / "data" / "templates.json").read_text(encoding="utf-8"))

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


SENTENCES = [
    template
    for name, kinds in TEMPLATES.items()
    if name != "origin"
    for templates in kinds.values()
    for template in templates
]


def without_slots(template):
    return tuple(token for token in template.split() if not token.startswith("{"))


def shapes(template, length=4):
    """Runs of `length` tokens in which every slot looks the same: what two sentences of one shape share."""
    tokens = ["<slot>" if token.startswith("{") else token for token in template.split()]
    runs = zip(*(tokens[i:] for i in range(length)), strict=False)
    return {run for run in runs if len({*run} - {"<slot>", "the", ",", "."}) > 1}


def test_no_word_of_a_template_means_something_in_the_world():
    words = {token for template in SENTENCES for token in without_slots(template)}
    assert not words & MEANINGFUL
    # Rock-paper-scissors names its items by single letters, so no template says "a" or "i".
    assert not {word for word in words if len(word) == 1 and word.isalpha()}


def test_no_sentence_is_written_twice():
    everything = [without_slots(template) for template in SENTENCES]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize("kind", ["modifier", "team", "goal"])
def test_held_out_sentences_have_other_shapes_and_partly_other_words(kind):
    seen, held_out = TEMPLATES["language"][kind], TEMPLATES["language_held_out"][kind]
    for a, b in itertools.product(seen, held_out):
        assert not shapes(a) & shapes(b), (a, b)
    seen_words = {token for template in seen for token in without_slots(template)}
    held_out_words = {token for template in held_out for token in without_slots(template)}
    assert len(held_out_words - seen_words) >= len(held_out_words) // 2
