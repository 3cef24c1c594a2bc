"""MessengerText: observations of MESSENGER in words."""

from __future__ import annotations

from collections.abc import Sequence

from magrounding.envs.messenger.arrays import (
    ALLY_ID,
    ALLY_WITH_MESSAGE_ID,
    ENTITIES,
    FIRST_SYMBOL,
    ME_ID,
    ME_WITH_MESSAGE_ID,
)
from magrounding.text_view import NOTHING, TextView

_NAMES = {
    **{FIRST_SYMBOL + kind: name for kind, name in enumerate(ENTITIES)},
    ME_ID: "me",
    ME_WITH_MESSAGE_ID: "me with a message",
    ALLY_ID: "ally",
    ALLY_WITH_MESSAGE_ID: "ally with a message",
}


class MessengerText(TextView):
    """Symbols are named after the entity that they stand for, as pictures show it; manuals say it in other words."""

    def word(self, i: int) -> str:
        return _NAMES.get(i) or super().word(i)

    def held(self, ids: Sequence[int]) -> str:
        return "a message" if any(ids) else NOTHING
