"""Keys that stand for the names of actions."""

from __future__ import annotations

from collections.abc import Sequence

from magrounding.errors import ConfigurationError


def letters_of(names: Sequence[str], reserved: Sequence[str] = ()) -> dict[str, int]:
    """Return letter or digit → action: the first digit or else letter of each name, neither reserved nor one before's.

    A name of which none is left, or texts to choose from, which have no names, are a ConfigurationError.
    """
    letters: dict[str, int] = {}
    for action, name in enumerate(names):
        signs = sorted(filter(str.isalnum, name.lower()), key=str.isalpha)
        own = next((each for each in signs if each not in (*letters, *reserved)), None)
        if own is None:
            raise ConfigurationError(f"no key is left for the action {name!r}: this game cannot be played by keys")
        letters[own] = action
    return letters
