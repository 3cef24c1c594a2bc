"""Sentences: all that manuals and goals are written with; ours (`data/*.json`), or those of a file from outside.

A file is JSON: split → construction → kind → list of sentences, with classes of words by split beside (see
docs/running_text.md). Ours have the same form and go the same way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from magrounding.brief import brief
from magrounding.envs.rtfm.constructions import (
    CONSTRUCTION,
    CONSTRUCTIONS,
    FILLER,
    KINDS,
    MINIMAL,
    MODIFIER,
    MOST_FILLERS,
    PARAPHRASE,
    PLAIN,
    SLOT,
    TEAM,
    TEXTS,
    TRAIN,
    Entry,
    Template,
    faults_of,
    parse_template,
    words_of,
)
from magrounding.envs.rtfm.ontology import MEANINGFUL
from magrounding.envs.rtfm.text import COMMA
from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.storage import parse_json, require_bytes, text_of, user_path
from magrounding.vocabulary import is_punctuation

MOST_SENTENCES = 1000
"""Sentences of a file, and words of all its classes."""
_ORDER = (PLAIN, *CONSTRUCTIONS)
_NAME_LENGTH = 4
"""Words of the longest name of a team."""


@dataclass(frozen=True, eq=False)
class Sentences:
    """Templates of every split, and what follows from them.

    Attributes:
        templates: by construction, those of `eval_paraphrase` last.
        classes: TRAIN or PARAPHRASE → class of words → the words that its slot may be.
        source: where they are from, for reports; "" for ours.
        digest: SHA-256 of the file; None for ours.
    """

    __repr__ = brief

    templates: tuple[Template, ...]
    classes: Mapping[str, Mapping[str, tuple[str, ...]]]
    source: str = ""
    digest: str | None = None

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Every word of every template and class, in order of appearance."""
        classes = (word for classes in self.classes.values() for words in classes.values() for word in words)
        return tuple(dict.fromkeys([COMMA, *words_of(self.templates), *classes]))

    def plain(self, kind: str, split: str | None = None) -> list[str]:
        """Texts of the plain statements or goals of a kind that manuals of a split have; None: of any split."""
        of = TEXTS if split is None else _texts_of(split)
        return [t.text for t in self.templates if (t.construction, t.kind) == (PLAIN, kind) and t.split in of]

    def drawn(self, names: Sequence[str], split: str) -> tuple[Template, ...]:
        """All templates that manuals of a split can use; the plain statements are always among them.

        Args:
            names: of the constructions that are switched on.
            split: `eval_paraphrase` has texts of its own alone, and `eval_construction` texts of its own alone about
                two groups; `eval_minimal` has the balanced ones of those of training, and its own.
        """
        own, found = _texts_of(split), []
        for template in self.templates:
            fits = template.split in own
            if template.groups == 2 and split == CONSTRUCTION:
                fits = template.split == CONSTRUCTION
            elif template.groups == 2 and split == MINIMAL:
                fits = fits and template.balanced
            if fits and template.kind != KINDS[2] and template.construction in (PLAIN, *names):
                found.append(template)
        return tuple(found)

    def classes_of(self, split: str) -> Mapping[str, tuple[str, ...]]:
        """Class of words → its words in a split."""
        return self.classes.get(PARAPHRASE if split == PARAPHRASE else TRAIN, {})


def _texts_of(split: str) -> tuple[str, ...]:
    """Splits of the templates that the manuals of a split have."""
    return (PARAPHRASE,) if split == PARAPHRASE else (TRAIN, split) if split in TEXTS[2:] else (TRAIN,)


@cache
def our_sentences(language: bool) -> Sentences:
    """Ours, with plain statements of one shape each or in templated language."""
    plain, content = (
        json.loads(files("magrounding.envs.rtfm").joinpath(f"data/{name}.json").read_text(encoding="utf-8"))
        for name in ("templates", "constructions")
    )
    for split, ending in ((TRAIN, ""), (PARAPHRASE, "_held_out")):
        content[split] = {PLAIN: plain[("language" if language else "plain") + ending], **content[split]}
    return Sentences(*_parse_content(content))


def find_sentences(path: str | None, language: bool) -> Sentences:
    """Return our sentences, or read those of a file, which are the same for both kinds of language.

    It is read afresh, and parsed where it is new.

    Args:
        path: of the file, relative to the current folder; None for ours.
        language: which of ours.

    Raises:
        DataNotFound: a file that is missing, or is none of sentences; the first fault is named, with its place.
    """
    if path is None:
        return our_sentences(language)
    missing = DataNotFound(f"there are no templates at {path}")
    return _parse_file(path, require_bytes(user_path(path), missing=missing, refused=DataNotFound))


def _form(name: str, entries: Mapping[str, Any]) -> Any:
    """The form of a table of a file: these entries, each of which may be left out, and no others."""
    fields = [(each, form | UnsetType, UNSET) for each, form in entries.items()]
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True)


@cache
def _file_form() -> Any:
    """The form of a file of sentences; what is wrong with one, and where, msgspec says."""
    own = {PLAIN: KINDS, FILLER: (FILLER,)}  # plain sentences alone have goals
    kinds = {each: _form("Kinds", dict.fromkeys(own.get(each, KINDS[:2]), list[str | Entry])) for each in _ORDER}
    classes = _form("Classes", dict.fromkeys((TRAIN, PARAPHRASE), dict[str, list[str]]))
    return _form("File", {"origin": Any, "classes": classes, **dict.fromkeys(TEXTS, _form("Split", kinds))})


@lru_cache(maxsize=8)
def _parse_file(path: str, content: bytes) -> Sentences:
    digest = hashlib.sha256(content).hexdigest()
    try:
        found = parse_json(text_of(content))
        msgspec.convert(found, _file_form())
        sentences = Sentences(*_parse_content(found), f"templates {path}, sha256 {digest}", digest)
        for fault in _faults_of(sentences):
            raise ConfigurationError(fault)
    except ValueError as error:  # also of JSON and UTF-8
        raise DataNotFound(f"{path} has no templates that can be read: {error}") from None
    return sentences


def _parse_content(content: Any) -> tuple[tuple[Template, ...], dict[str, dict[str, tuple[str, ...]]]]:
    """Parse templates and classes; ConfigurationError, with its place, for what is none."""
    classes = {
        split: {name: _parse_class(name, words, split) for name, words in found.items()}
        for split, found in content.get("classes", {}).items()
    }
    templates = []
    for split in TEXTS:
        known = classes.get(PARAPHRASE if split == PARAPHRASE else TRAIN, {})
        for construction, kinds in content.get(split, {}).items():
            for kind, entries in kinds.items():
                for number, entry in enumerate(entries, 1):
                    try:
                        templates.append(parse_template(split, construction, kind, entry, known))
                    except ConfigurationError as error:
                        place = f"{split} → {construction} → {kind}, sentence {number}"
                        raise ConfigurationError(f"{place}: {error}") from None
    templates.sort(key=lambda template: (template.split == PARAPHRASE, _ORDER.index(template.construction)))
    return tuple(templates), classes


def _parse_class(name: str, words: list[str], split: str) -> tuple[str, ...]:
    named = name.isidentifier() and name.islower() and not SLOT.fullmatch(f"{{{name}}}")
    fits = all(word.isalnum() and word == word.lower() and word not in MEANINGFUL for word in words)
    if not named or not fits or not 0 < len(words) <= MOST_SENTENCES:
        raise ConfigurationError(
            f"classes → {split} → {name}: a class has a name in small letters, which is no slot, and 1 to "
            f"{MOST_SENTENCES} words in small letters, none of which names something of the game"
        )
    return tuple(words)


def _faults_of(sentences: Sentences) -> Iterator[str]:
    """Yield a sentence for each template of no construction, or twice, or that manuals need and is missing.

    Of files alone: ours are so, as tests check.
    """
    texts = [template.text for template in sentences.templates]
    if len(texts) > MOST_SENTENCES:
        yield f"it has {len(texts):,} sentences, and may have {MOST_SENTENCES:,}"
    for text in texts:
        if texts.count(text) > 1:
            yield f"{text!r} stands twice: a sentence is of one split, and of one list in it"
    for template in sentences.templates:
        for fault in faults_of(template):
            yield f"{template.split} → {template.construction} → {template.kind}, {template.text!r}: {fault}"
    for kind in KINDS:
        if not sentences.plain(kind, TRAIN):
            yield f"train → plain → {kind} has no sentence, and every manual needs one"
    for split in TEXTS:
        if sum(template.kind == FILLER for template in sentences.drawn((FILLER,), split)) == 1:
            yield f"{split} has one filler, and a manual may have two: write another, or none"


def prose_shape(sentences: Sentences, layout: str, names: Sequence[str], members: tuple[int, int]) -> tuple[int, int]:
    """Rows of a manual and words of a row, with room for every split; `members` are of an element and of a team."""
    found = {template for split in TEXTS for template in sentences.drawn(names, split)}

    def most(kind: str, groups: int) -> int:
        fitting = (template.text for template in found if (template.kind, template.groups) == (kind, groups))
        return longest(fitting, kind, members[kind != MODIFIER], layout == "stream")

    modifier, team, filler = most(MODIFIER, 1), most(TEAM, 1), most(FILLER, 0)
    modifiers, teams = most(MODIFIER, 2), most(TEAM, 2)
    fillers = MOST_FILLERS if filler else 0
    rows = 7 + fillers
    texts = sorted([modifier, modifier, team, team, modifiers, modifiers, teams, filler], reverse=True)
    if layout == "statements":
        return rows, texts[0]
    if layout == "merged":
        return rows // 2, sum(texts[:3])
    pairs = 2 * max(2 * modifier, modifiers) + max(2 * team, teams)
    return 1, pairs + team + fillers * filler


def longest(texts: Iterable[str], kind: str, members: int, stream: bool) -> int:
    """Words of the longest of some templates of a kind, about lists of so many modifiers or monsters."""
    name = 1 if kind == MODIFIER else _NAME_LENGTH
    return max((_length(text, members, name, stream) for text in texts), default=0)


def _length(text: str, members: int, name: int, stream: bool) -> int:
    """Words of a template about groups of so many members, whose names have so many words."""
    total = 0
    for word in text.split():
        slot = SLOT.fullmatch(word)
        if slot and slot[1].islower():
            count = len(slot[1]) * members
            total += count if stream else 2 * count - 1
        elif slot:
            total += name
        else:
            total += not (stream and is_punctuation(word))
    return total
