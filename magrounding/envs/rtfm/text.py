"""Language: every sentence that a document can hold is written out once, as a row of ids; kernels only pick rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from magrounding.vocabulary import Vocabulary

LAYOUTS = ("statements", "merged", "paragraph", "stream")
"""One statement a row; two or three; the whole manual in one row; the same without punctuation."""
STATEMENTS, MERGED, PARAGRAPH, STREAM = range(len(LAYOUTS))

PUNCTUATION = (",", ".", "?")
"""The words that a stream leaves out."""

KINDS = ("modifier", "team", "goal")
"""Kinds of sentence: which modifiers beat an element; which monsters are of a team; whom to defeat."""

_LIST_SLOTS = ("{modifiers}", "{monsters}")
_NAME_SLOTS = ("{element}", "{team}")
_COMMA = ","


@cache
def templates() -> dict[str, dict[str, list[str]]]:
    """`data/templates.json`: set name → kind → sentences of space-separated tokens with slots."""
    data = json.loads(files("magrounding.envs.rtfm").joinpath("data/templates.json").read_text(encoding="utf-8"))
    return {name: kinds for name, kinds in data.items() if isinstance(kinds, dict)}


def template_words() -> list[str]:
    """Every word of every template, in order of appearance, and the comma of lists."""
    sentences = [sentence for kinds in templates().values() for kind in KINDS for sentence in kinds[kind]]
    slots = (*_LIST_SLOTS, *_NAME_SLOTS)
    return list(dict.fromkeys([_COMMA, *(word for s in sentences for word in s.split() if word not in slots)]))


def template_set(language: bool, held_out: bool) -> str:
    """Name of the set of templates that a document is written with."""
    return ("language" if language else "plain") + ("_held_out" if held_out else "")


def fill(template: str, members: Sequence[str], name: str) -> str:
    """The sentence of a template about a list of modifiers or monsters and an element or team."""
    for slot in _LIST_SLOTS:
        template = template.replace(slot, f" {_COMMA} ".join(members))
    for slot in _NAME_SLOTS:
        template = template.replace(slot, name)
    return template


def without_punctuation(sentence: str) -> str:
    """A sentence as a stream has it."""
    return " ".join(word for word in sentence.split() if word not in PUNCTUATION)


def layout_shape(layout: str, lengths: list[int]) -> tuple[int, int]:
    """Rows of a manual and words of a row, by the words of each statement at most, for a stream without punctuation."""
    longest = sorted(lengths, reverse=True)
    if layout == "statements":
        return len(lengths), longest[0]
    if layout == "merged":
        return len(lengths) // 2, sum(longest[: 2 + len(lengths) % 2])
    return 1, sum(longest)


def sentence_length(kind: str, language: bool, members: int, names: Sequence[str], *, stream: bool = False) -> int:
    """Words of the longest sentence of a kind about lists of `members`; of a stream, without punctuation.

    There is room for the held-out templates too, so that all splits have one shape.
    """
    longest = max(names, key=lambda name: len(name.split()))
    both = [template for out in (False, True) for template in templates()[template_set(language, out)][kind]]
    sentences = (fill(template, ["word"] * members, longest) for template in both)
    return max(len((without_punctuation(s) if stream else s).split()) for s in sentences)


def sentence_table(
    vocabulary: Vocabulary,
    kind: str,
    language: bool,
    held_out: bool,
    lists: Sequence[Sequence[str]],
    names: Sequence[str],
    *,
    stream: bool = False,
) -> np.ndarray:
    """All sentences of one kind.

    Args:
        vocabulary, kind: of the world; one of KINDS.
        language, held_out: which set of templates.
        lists: C lists of modifiers or monsters that a sentence can be about (one empty list for goals).
        names: N elements or teams.
        stream: without punctuation.

    Returns:
        [T, N, C, L] int16, T templates; L as `sentence_length`.
    """
    length = sentence_length(kind, language, len(lists[0]), names, stream=stream)
    chosen = templates()[template_set(language, held_out)][kind]
    sentences = [fill(t, members, name) for t in chosen for name in names for members in lists]
    if stream:
        sentences = [without_punctuation(sentence) for sentence in sentences]
    return np.stack([vocabulary.encode(sentence, length) for sentence in sentences]).reshape(
        len(chosen), len(names), len(lists), length
    )
