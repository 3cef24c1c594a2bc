"""Entities on the board, the symbols that stand for them."""

from __future__ import annotations

ENTITIES = tuple("airplane mage dog bird fish scientist thief ship ball robot queen sword".split())
ROLES = ("enemy", "message", "goal")
MOVEMENTS = ("chasing", "fleeing", "immovable", "unknown")
"""Movements of an entity that a sentence may state; "unknown": none is stated."""

FIRST_SYMBOL = 2
"""The symbol of entity e is 2 + e. No symbol is a word, and nothing maps one to the other but the manual's use."""
ME_ID, ME_WITH_MESSAGE_ID, ALLY_ID, ALLY_WITH_MESSAGE_ID = 15, 16, 17, 18
FIRST_WORD = 19
