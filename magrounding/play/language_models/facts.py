"""Questions about a manual, made of the claims that its environment lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

STATED = "said"
"""Polarity of a claim that is neither denied nor retracted."""


class Asked(NamedTuple):
    """A question: the answers to choose from, and those that are right."""

    question: str
    answers: tuple[str, ...]
    right: frozenset[str]


def ask_fact(facts: Sequence[Any], seed: int) -> Asked | None:
    """Return a question for one of the claims of a manual (`HasFacts.facts`); None where two answers are not there.

    The answers are all objects of the same relation that the manual speaks of, in alphabetical order. The seed decides
    which claim it is.
    """
    rng, claims = np.random.default_rng(seed), list(dict.fromkeys(fact for fact in facts if fact.polarity == STATED))
    for k in rng.permutation(len(claims)).tolist():
        relation, subject = claims[k].relation, claims[k].subject
        answers = tuple(sorted({fact.object for fact in facts if fact.relation == relation}))
        right = frozenset(fact.object for fact in claims if (fact.relation, fact.subject) == (relation, subject))
        if len(answers) > len(right):
            return Asked(f'which of these is right: "{subject} {relation} …"?', answers, right)
    return None
