"""A small corpus of the form that MESSENGER's authors gave theirs: their names, lists of any length, empty cells."""

import json
from itertools import product

from magrounding.envs.messenger.arrays import ENTITIES, ROLES
from magrounding.envs.messenger.manual import TEXTS, our_corpus
from magrounding.envs.messenger.sentences import triples

OURS = {"chaser": "chasing", "fleeing": "fleeing", "immovable": "immovable", "unknown": "unknown"}
"""Their name of a movement → ours."""
SENTENCES = {"chaser": 2, "fleeing": 1, "immovable": 1, "unknown": 3}


def pairs_of(text):
    """(entity, role) that the games of a text's splits have."""
    names = ("many", "single") if text == "train" else (text,)
    return {(ENTITIES[kind], ROLES[role]) for n in names for triple in triples(n) for role, kind in enumerate(triple)}


def small_corpus(*, whole=False):
    """Text → entity → role → movement → sentences, each naming its cell; by default of the games' own pairs alone."""
    data = {}
    for text in TEXTS:
        data[text] = {}
        for entity, role in product(ENTITIES, ROLES):
            known = whole or (entity, role) in pairs_of(text)
            if not known and entity in ENTITIES[::2]:
                continue  # left out; the others are there and empty
            data[text].setdefault(entity, {})[role] = {
                name: [f"In {text}, the {entity} is {role}: {OURS[name]} {'so ' * k}!" for k in range(many * known)]
                for name, many in SENTENCES.items()
            }
    return data


def our_sentences():
    """Ours, as files have them."""
    data = {}
    for text, cells in our_corpus().sentences.items():
        for (entity, role, movement), sentences in cells.items():
            data.setdefault(text, {}).setdefault(entity, {}).setdefault(role, {})[movement] = list(sentences)
    return data


def write_corpus(folder, data):
    """The folder's path, with the three files in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for text in TEXTS:
        (folder / f"text_{text}.json").write_text(json.dumps(data[text]), encoding="utf-8")
    return str(folder)
