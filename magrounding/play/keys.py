"""Keys: which key stands for which action, where people play by keys."""

from __future__ import annotations

from collections.abc import Sequence

from magrounding.errors import ConfigurationError


def letters_of(names: Sequence[str], reserved: Sequence[str] = ()) -> dict[str, int]:
    """Letter or digit → action: the first of each name that none before has.

    Args:
        names: of the actions, by number.
        reserved: letters that stand for something else.

    Raises:
        ConfigurationError: a name of which no letter is left, or none that has any, as texts to choose from.
    """
    letters: dict[str, int] = {}
    for action, name in enumerate(names):
        own = next((each for each in name.lower() if each.isalnum() and each not in (*letters, *reserved)), None)
        if own is None:
            raise ConfigurationError(f"no key is left for the action {name!r}: this game cannot be played by keys")
        letters[own] = action
    return letters
