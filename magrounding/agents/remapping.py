"""Remapping the embeddings of a network to another vocabulary, by spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from magrounding.agents.own_defaults import own_defaults
from magrounding.agents.policy import Policy
from magrounding.agents.weights import fit_weights
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec

WordRows = Mapping[str, Sequence[str]]
"""Parameter → the spelling of each of its rows."""


def reads_any_words(policy: Policy) -> bool:
    """Return True if no parameter is about any word, so that weights fit every vocabulary as they are."""
    return policy.word_rows is not None and not policy.word_rows


def within(part: str, rows: WordRows | None) -> WordRows | None:
    """Prefix the names of `Policy.word_rows` with that of a submodule."""
    return None if rows is None else {f"{part}.{name}": spelling for name, spelling in rows.items()}


@own_defaults()
def remap_embeddings(policy: Policy, spec: EnvSpec) -> Policy:
    """Return a copy of a network for a `spec` of another vocabulary: rows are copied by spelling, new words zero.

    Raises:
        ConfigurationError: a network whose parameters depend on its vocabulary in another way than row by row, or an
            environment that it is not made for.
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
