"""The last two lines of NetHack's screen as one text, made of the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = (9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 21, 22, 25)
"""Places in nle's `blstats` of what is reported; the turn is not, as it would make every text a new one."""

_HUNGER = ("satiated", "", "hungry", "weak", "fainting", "fainted", "starved")
_BURDEN = ("", "burdened", "stressed", "strained", "overtaxed", "overloaded")
_CONDITIONS = (
    "stone,slime,strangled,food poisoned,ill,blind,deaf,stunned,confused,hallucinating,levitating,flying,riding"
).split(",")
"""Conditions, by the bits of the last number."""


def status_text(numbers: Sequence[int]) -> str:
    """Return the status line.

    Args:
        numbers: of `blstats`, those SHOWN.
    """
    score, hp, max_hp, depth, gold, pw, max_pw, ac, level, points, hunger, burden, conditions = numbers
    states = [_named(_HUNGER, hunger), _named(_BURDEN, burden)]
    states += [name for bit, name in enumerate(_CONDITIONS) if conditions >> bit & 1]
    line = (
        f"dlvl {depth} $ {gold} hp {hp} ( {max_hp} ) pw {pw} ( {max_pw} ) ac {ac} xp {level} / {points} score {score}"
    )
    return " ".join([line, *filter(None, states)])


def _named(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else ""
