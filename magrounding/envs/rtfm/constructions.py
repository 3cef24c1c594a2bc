"""Constructions: ways to state facts that share a sentence, deny, except, point back or take back.

Every template is data: words, slots for lists and names, classes of words, and the claims that it makes. Kernels
(`prose`) put manuals together from them.

Slots: `{a}` and `{b}` are the members of the first and the second group that a text is about, `{ab}` those of both,
mixed; `{A}` and `{B}` are the names of these groups (elements or teams; a text about one group may name another as
`{B}`). A second mention has a 2. A claim is a list and a name: "a A"; "ab:b A" speaks of those of `{ab}` that are b's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from magrounding.envs.rtfm.text import KINDS, PUNCTUATION, template_set, templates
from magrounding.errors import ConfigurationError, check_choice

CONSTRUCTIONS = tuple("gapping respectively not_but exception passive former pronoun retraction filler".split())
"""Conjunction with gapping, "respectively", "not X but Y", exceptions, the passive, "the former … the latter", pronouns
across sentences, a false statement that a later one takes back, and sentences that say nothing."""
HELD_OUT = ("respectively", "exception")
"""Constructions that are in `eval_construction` and in no other split."""
PLAIN, FILLER = "plain", "filler"

STATED, DENIED, RETRACTED = range(3)
"""Polarities of a claim in a manual: stated, denied, or stated and retracted."""
POLARITIES = ("said", "denied", "retracted")

MODIFIER, TEAM = KINDS[:2]
MOST_FILLERS = 2
"""Sentences that say nothing, in a manual."""
_NAME_LENGTH = 4
"""Words of the longest name of a team."""

_SLOT = re.compile(r"\{(a|b|ab|A|B)2?\}")
_LEGACY = {"{modifiers}": "{a}", "{monsters}": "{a}", "{element}": "{A}", "{team}": "{A}"}


@dataclass(frozen=True)
class Claim:
    """A claim of a template.

    Attributes:
        mention: number of the slot that lists the subjects, among the template's lists and names.
        group: of which of the two groups the subjects are, 0 or 1.
        name: number of the slot of the name.
        polarity: STATED, DENIED or RETRACTED.
    """

    mention: int
    group: int
    name: int
    polarity: int


@dataclass(frozen=True)
class Template:
    """A text of one or more sentences about the members of `groups` groups.

    Attributes:
        construction: one of CONSTRUCTIONS, or PLAIN.
        kind: "modifier", "team" or "filler".
        text: tokens and slots.
        groups: 0, 1 or 2.
        claims: what it claims.
    """

    construction: str
    kind: str
    text: str
    groups: int
    claims: tuple[Claim, ...]

    @property
    def balanced(self) -> bool:
        """True where the text of a twin has sentences of the same words.

        Twins exchange all modifiers of two elements, or two monsters of two teams: these must stand in one sentence.
        """
        if self.groups != 2:
            return False
        if self.kind == TEAM:
            return all(sentence.count("{a") == sentence.count("{b") for sentence in _singly(self.text).split(" ."))
        exchanged = re.sub(r"\{([ab])(2?)\}", lambda m: "{" + "ba"["ab".index(m[1])] + m[2] + "}", self.text)
        return _bags(self.text) == _bags(exchanged)


def _singly(text: str) -> str:
    """A template with a slot of both lists as two slots."""
    return text.replace("{ab}", "{a} {b}")


def _bags(text: str) -> Counter[tuple[str, ...]]:
    """Count the bags of words of the sentences."""
    same = _singly(re.sub(r"\{(a|b|A|B)2\}", r"{\1}", text))
    return Counter(tuple(sorted(sentence.split())) for sentence in same.split(" ."))


@cache
def _data() -> dict[str, Any]:
    return json.loads(files("magrounding.envs.rtfm").joinpath("data/constructions.json").read_text(encoding="utf-8"))


@cache
def all_templates(paraphrase: bool) -> tuple[Template, ...]:
    """Return the templates of the constructions, as trained on or as held out for `eval_paraphrase`."""
    found = _data()["held_out" if paraphrase else "seen"]
    return tuple(
        _parse(construction, kind, entry)
        for construction in CONSTRUCTIONS
        for kind, entries in found.get(construction, {}).items()
        for entry in entries
    )


@cache
def plain_templates(language: bool, held_out: bool) -> tuple[Template, ...]:
    """The statements of `text`, in their order, as templates about one group."""
    chosen = templates()[template_set(language, held_out)]
    found = []
    for kind in (MODIFIER, TEAM):
        for sentence in chosen[kind]:
            for slot, ours in _LEGACY.items():
                sentence = sentence.replace(slot, ours)
            found.append(_parse(PLAIN, kind, sentence))
    return tuple(found)


def _parse(construction: str, kind: str, entry: str | dict[str, Any]) -> Template:
    entry = {"text": entry} if isinstance(entry, str) else entry
    text = entry["text"]
    slots = [word[1:-1] for word in text.split() if _SLOT.fullmatch(word)]
    groups = 2 if {"b", "ab"} & set(slots) else 1 if "a" in slots else 0
    stated = entry.get("said", ["a A", "b B"][:groups])
    claims = [
        Claim(slots.index(subject), int(group == "b"), slots.index(name), polarity)
        for polarity, listed in enumerate((stated, entry.get("denied", ()), entry.get("retracted", ())))
        for subjects, name in (claim.split() for claim in listed)
        for subject, group in ((subjects.partition(":")[0], subjects.partition(":")[2] or subjects[0]),)
    ]
    return Template(construction, kind, text, groups, tuple(claims))


def word_classes(paraphrase: bool) -> dict[str, list[str]]:
    """Class of words → the words that its slot may be."""
    return _data()["classes"]["held_out" if paraphrase else "seen"]


@cache
def construction_words() -> tuple[str, ...]:
    """Every word of every template and class, in order of appearance."""
    texts = [template.text for paraphrase in (False, True) for template in all_templates(paraphrase)]
    classes = [word for paraphrase in (False, True) for words in word_classes(paraphrase).values() for word in words]
    return tuple(dict.fromkeys([*(word for text in texts for word in text.split() if "{" not in word), *classes]))


def parse_constructions(text: str) -> tuple[str, ...]:
    """Names in "all", "none", or names joined by + or commas; ConfigurationError for an unknown one."""
    if not isinstance(text, str):
        raise ConfigurationError(f"constructions are all, none, or names joined by +, got {text!r}")
    if text in ("all", "none", ""):
        return CONSTRUCTIONS if text == "all" else ()
    named = {check_choice("construction", name.strip(), CONSTRUCTIONS) for name in text.replace(",", "+").split("+")}
    return tuple(name for name in CONSTRUCTIONS if name in named)


def templates_of(names: Iterable[str], language: bool, split: str) -> tuple[Template, ...]:
    """All templates that manuals of a split can use; the plain statements are always among them.

    Args:
        names: of the constructions that are switched on.
        language: whether plain statements are templated language.
        split: `eval_construction` states pairs of groups by HELD_OUT alone, which no other split has; `eval_paraphrase`
            has texts and words of its own; `eval_minimal` has of texts about two groups the balanced ones only.
    """
    paraphrase = split == "eval_paraphrase"
    found = [*plain_templates(language, paraphrase)]
    for template in all_templates(paraphrase):
        unseen = template.construction in HELD_OUT
        allowed = not unseen if template.groups < 2 or split != "eval_construction" else unseen
        if template.groups == 2 and split == "eval_minimal":
            allowed = allowed and template.balanced
        if allowed and template.construction in names:
            found.append(template)
    return tuple(found)


def prose_shape(layout: str, names: tuple[str, ...], language: bool, members: tuple[int, int]) -> tuple[int, int]:
    """Rows of a manual and words of a row, with room for every split; `members` are of an element and of a team."""
    splits = "train", "eval_paraphrase", "eval_construction"
    found = {template for split in splits for template in templates_of(names, language, split)}

    def longest(kind: str, groups: int) -> int:
        count, name = (members[0], 1) if kind == MODIFIER else (members[1], _NAME_LENGTH)
        fitting = (template.text for template in found if (template.kind, template.groups) == (kind, groups))
        return max((_length(text, count, name, layout == "stream") for text in fitting), default=0)

    modifier, team, filler = longest(MODIFIER, 1), longest(TEAM, 1), longest(FILLER, 0)
    modifiers, teams = longest(MODIFIER, 2), longest(TEAM, 2)
    fillers = MOST_FILLERS if FILLER in names else 0
    rows = 7 + fillers
    texts = sorted([modifier, modifier, team, team, modifiers, modifiers, teams, filler], reverse=True)
    if layout == "statements":
        return rows, texts[0]
    if layout == "merged":
        return rows // 2, sum(texts[:3])
    pairs = 2 * max(2 * modifier, modifiers) + max(2 * team, teams)
    return 1, pairs + team + fillers * filler


def _length(text: str, members: int, name: int, stream: bool) -> int:
    """Words of a template about groups of so many members, whose names have so many words."""
    total = 0
    for word in text.split():
        slot = _SLOT.fullmatch(word)
        if slot and slot[1].islower():
            count = len(slot[1]) * members
            total += count if stream else 2 * count - 1
        elif slot:
            total += name
        else:
            total += not (stream and word in PUNCTUATION)
    return total
