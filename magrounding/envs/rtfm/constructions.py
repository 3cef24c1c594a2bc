"""Constructions: ways to state facts that share a sentence, deny, except, point back or take back.

Every template is data: words, slots for lists and names, classes of words, and the claims that it makes. Kernels
(`prose`) put manuals together from them.

Slots: `{a}` and `{b}` are the members of the first and the second group that a text is about, `{ab}` those of both,
mixed; `{A}` and `{B}` are the names of these groups (elements or teams; a text about one group may name another as
`{B}`). A second mention has a 2. A claim is a list and a name: "a A"; "ab:b A" speaks of those of `{ab}` that are b's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from magrounding.envs.rtfm.ontology import MEANINGFUL
from magrounding.errors import ConfigurationError, check_choice

CONSTRUCTIONS = tuple("gapping respectively not_but exception passive former pronoun retraction filler".split())
"""Conjunction with gapping, "respectively", "not X but Y", exceptions, the passive, "the former … the latter", pronouns
across sentences, a false statement that a later one takes back, and sentences that say nothing."""
PLAIN, FILLER = "plain", "filler"

KINDS = MODIFIER, TEAM, GOAL = ("modifier", "team", "goal")
"""Kinds of sentence: which modifiers beat an element; which monsters are of a team; whom to defeat."""

TEXTS = TRAIN, PARAPHRASE, CONSTRUCTION, MINIMAL = ("train", "eval_paraphrase", "eval_construction", "eval_minimal")
"""Splits that templates are of; `eval` and `eval_new` have those of training."""

STATED, DENIED, RETRACTED = range(3)
"""Polarities of a claim in a manual: stated, denied, or stated and retracted."""
POLARITIES = ("said", "denied", "retracted")

MOST_FILLERS = 2
"""Sentences that say nothing, in a manual."""
MOST_WORDS = 60
"""Words and slots of a template."""

_OF_TWO = ("gapping", "respectively", "former")
"""Constructions that are about two groups; the others but PLAIN and FILLER are about one or two."""
_FALSE = {"not_but": {DENIED}, "exception": {DENIED}, "retraction": {RETRACTED}}
"""Polarities of the false claims of a construction; the others make none."""

SLOT = re.compile(r"\{(a|b|ab|A|B)2?\}")
_OTHER_NAMES = {"{modifiers}": "{a}", "{monsters}": "{a}", "{element}": "{A}", "{team}": "{A}"}
_TOKEN = re.compile(r"\{\w*\}|[^\W_]+|[^\w\s]")
_CLAIM = re.compile(r"(?:([ab]2?)|(ab2?):([ab])) ([AB]2?)")


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
        split: one of TEXTS.
        construction: one of CONSTRUCTIONS, or PLAIN.
        kind: one of KINDS, or "filler".
        text: tokens and slots.
        groups: 0, 1 or 2.
        claims: what it claims.
    """

    split: str
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
            return all(sentence.count("{a") == sentence.count("{b") for sentence in _sentences(_singly(self.text)))
        exchanged = re.sub(r"\{([ab])(2?)\}", lambda m: "{" + "ba"["ab".index(m[1])] + m[2] + "}", self.text)
        return _bags(self.text) == _bags(exchanged)


def _sentences(text: str) -> list[str]:
    return re.split(r" [.!?]", text)


def _singly(text: str) -> str:
    """A template with a slot of both lists as two slots."""
    return text.replace("{ab}", "{a} {b}")


def _bags(text: str) -> Counter[tuple[str, ...]]:
    """Count the bags of words of the sentences."""
    same = _singly(re.sub(r"\{(a|b|A|B)2\}", r"{\1}", text))
    return Counter(tuple(sorted(sentence.split())) for sentence in _sentences(same))


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A sentence of a file that is not a text alone; `said` is "a A", and "b B" of two lists, where it is left out."""

    text: str
    said: list[str] | UnsetType = UNSET
    denied: list[str] = []
    retracted: list[str] = []


def parse_template(
    split: str, construction: str, kind: str, entry: str | Mapping[str, Any], classes: Collection[str]
) -> Template:
    """Make a template of a text, or of what an `Entry` holds.

    Words are lower-cased, punctuation marks become words, and `{modifiers}`, `{monsters}`, `{element}` and `{team}` are
    other names of `{a}` and `{A}`.

    Raises:
        ConfigurationError: a slot that is unknown or stands twice, a claim of no form, or a word that names something
            of the game.
    """
    entry = {"text": entry} if isinstance(entry, str) else entry
    tokens: list[str] = [word if word.startswith("{") else word.lower() for word in _TOKEN.findall(entry["text"])]
    words = [_OTHER_NAMES.get(token, token) for token in tokens]
    slots = [word[1:-1] for word in words if SLOT.fullmatch(word)]
    groups = 2 if "b" in "".join(slots) else 1 if "a" in "".join(slots) else 0
    claimed = {POLARITIES[STATED]: ["a A", "b B"][:groups], **entry}
    listed = [(claim, polarity) for polarity, name in enumerate(POLARITIES) for claim in claimed.get(name, ())]
    for fault in _faults_of_words(words, slots, classes, [claim for claim, _ in listed]):
        raise ConfigurationError(fault)
    claims = []
    for claim, polarity in listed:
        alone, both, side, name = _CLAIM.fullmatch(claim).groups()  # pyright: ignore[reportOptionalMemberAccess]
        subjects = alone or both
        claims.append(Claim(slots.index(subjects), "ab".index(side or subjects[0]), slots.index(name), polarity))
    return Template(split, construction, kind, " ".join(words), groups, tuple(claims))


def _faults_of_words(words: list[str], slots: list[str], classes: Collection[str], claims: list[str]) -> Iterator[str]:
    """Yield a sentence for each word, slot and claim that no template has, whatever its construction."""
    if not 0 < len(words) <= MOST_WORDS:
        yield f"a sentence has 1 to {MOST_WORDS} words and slots, got {len(words)}"
    for word in words:
        if word[0] in "{}" and word[1:-1] not in (*slots, *classes):
            yield f"{word} is neither a slot nor a class of words"
        if word in MEANINGFUL:
            yield f"{word!r} names something of the game: only slots may"
        if SLOT.fullmatch(word) and words.count(word) > 1:
            yield f"{word} stands twice: a second mention has a 2, as {{a2}}"
    for claim in claims:
        if not (found := _CLAIM.fullmatch(claim)):
            yield f"a claim is a list and a name, as 'a A' or 'ab:b A', got {claim[:40]!r}"
        elif not {found[1] or found[2], found[4]} <= {*slots}:
            yield f"it claims {claim!r}, of which the text lacks a slot"


def faults_of(template: Template) -> Iterator[str]:
    """Yield a sentence for each fault of a template that its construction does not have.

    It has another number of lists, or classes of words in a plain statement; a list without its one true claim; other
    false claims than those of the construction; or a slot in no claim.
    """
    blanks = [word for word in template.text.split() if word.startswith("{")]
    slots = [word[1:-1] for word in blanks if SLOT.fullmatch(word)]
    if template.construction == PLAIN and len(slots) < len(blanks):
        yield "a plain sentence has no class of words: write one sentence for each word"
    if template.kind in (GOAL, FILLER):
        if slots != ["A"] * (template.kind == GOAL):
            form = "no slot but {team}, once" if template.kind == GOAL else "no slot"
            yield f"a {template.kind} has {form}"
        if template.claims:
            yield f"a {template.kind} makes no claim"
        return
    if template.groups == 0:
        yield "it has no list: {a} is the slot of modifiers or monsters"
    elif template.construction in _OF_TWO and template.groups == 1:
        yield f"{template.construction} is about two lists, {{a}} and {{b}}"
    elif template.construction == PLAIN and template.groups == 2:
        yield "a plain sentence is about one list, {a}"
    elif template.split == MINIMAL and template.groups == 2 and not template.balanced:
        yield "in eval_minimal each sentence with {a} names {b} just so, and {A} and {B}"
    true = [claim.group for claim in template.claims if claim.polarity == STATED]
    false = [claim.group for claim in template.claims if claim.polarity != STATED]
    for claim in template.claims:
        if (slots[claim.name][0] == "AB"[claim.group]) != (claim.polarity == STATED):
            claimed = f"'{'ab'[claim.group]} {slots[claim.name]}' is {POLARITIES[claim.polarity]}"
            yield f"{claimed}: {{a}} are those of {{A}} and {{b}} of {{B}}, and of no other"
    if sorted(true) != list(range(template.groups)) or len(set(false)) < len(false):
        yield "each list is said once to have its name, and denied or retracted one other at most"
    if {claim.polarity for claim in template.claims} - {STATED} != _FALSE.get(template.construction, set()):
        false_ones = " and ".join(POLARITIES[each] for each in _FALSE.get(template.construction, ())) or "nothing else"
        yield f"{template.construction} has claims that are said and {false_ones}"
    for k, slot in enumerate(slots):
        if all(k not in (claim.mention, claim.name) for claim in template.claims):
            yield f"{{{slot}}} is in no claim"


def words_of(templates: Iterable[Template]) -> list[str]:
    """Every word of templates, in order of appearance."""
    return list(dict.fromkeys(word for t in templates for word in t.text.split() if not word.startswith("{")))


def parse_constructions(text: str) -> tuple[str, ...]:
    """Names in "all", "none", or names joined by + or commas; ConfigurationError for an unknown one."""
    if text in ("all", "none", ""):
        return CONSTRUCTIONS if text == "all" else ()
    named = {check_choice("construction", name.strip(), CONSTRUCTIONS) for name in text.replace(",", "+").split("+")}
    return tuple(name for name in CONSTRUCTIONS if name in named)
