"""Networks and words they were not made for: what was learnt of a word goes with its spelling, of others nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from magrounding.agents.policy import Policy
from magrounding.agents.weights import fit_weights
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec

WordRows = Mapping[str, Sequence[str]]
"""Parameter → the spelling that each of its rows is about."""


def reads_any_words(policy: Policy) -> bool:
    """Whether no parameter is about any word, so that weights fit every vocabulary as they are."""
    return policy.word_rows is not None and not policy.word_rows


def within(part: str, rows: WordRows | None) -> WordRows | None:
    """`Policy.word_rows` of a network that has these in a part of that name."""
    return None if rows is None else {f"{part}.{name}": spelling for name, spelling in rows.items()}


def respell(policy: Policy, spec: EnvSpec) -> Policy:
    """A copy of a network for a world that shows the same in other words.

    Rows about what is spelt alike are kept; those about anything new are zero, as nothing was learnt of it.

    Args:
        policy: the network.
        spec: of the other world.

    Raises:
        ConfigurationError: a network whose parameters are about its own words in another way than row by row, or a
            world that it is not made for.
    """
    known = policy.word_rows
    with torch.random.fork_rng(devices=[]):
        make: Any = type(policy)
        other: Policy = make(spec, policy.config) if known is not None else policy
    new = other.word_rows
    if known is None or new is None:
        raise ConfigurationError(
            f"{type(policy).__name__.lower()} has learnt the words of its own games and reads no others: train it on "
            "games with these words"
        )
    weights = dict(policy.state_dict())
    for name, spelling in new.items():
        row_of = {word: row for row, word in enumerate(known[name])}
        kept = [(row, row_of[word]) for row, word in enumerate(spelling) if word in row_of]
        old = weights[name]
        weights[name] = old.new_zeros(len(spelling), *old.shape[1:])
        if kept:
            to, of = torch.tensor(kept, device=old.device).unbind(1)
            weights[name][to] = old[of]
    fit_weights(other, weights, "this team")
    return other.to(next(policy.parameters()).device).train(policy.training)
