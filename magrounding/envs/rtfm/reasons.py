"""Kernel that writes what the best moves rest on: whom each agent is after, what comes first, what the manual says."""

from __future__ import annotations

from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, MANUAL_ROW, OBJECT, PRESENT, RELATION, ROW, TARGET
from magrounding.envs.rtfm.prose import BEATS
from magrounding.jit import inner_njit


@inner_njit
def write_reasons(rules, entities, facts, targets, subgoals, statements):
    """targets and subgoals [B, n, H, W], and the rows of the manual about targets [B, n, S], all bool, false before.

    An agent whose item beats a living target has such targets as subgoals, and asks the manual about them alone; the
    subgoals of another are the items that beat its targets. Who a target is, the goal and the teams say; which of them
    an item beats is known only after the manual was asked, so that `targets` does not depend on it.
    """
    items = rules.agents + rules.monsters
    for b in range(entities.shape[0]):
        for a in range(rules.agents):
            game, held = entities[b], entities[b, a, HELD]
            if game[a, PRESENT] == 0:
                continue
            beaten = game[held, ELEMENT] if held >= 0 else -1
            armed, elements = False, 0
            for e in range(rules.agents, items):
                armed |= game[e, PRESENT] == 1 and game[e, TARGET] == 1 and game[e, ELEMENT] == beaten
            for e in range(rules.agents, items):
                if game[e, PRESENT] == 0 or game[e, TARGET] == 0:
                    continue
                targets[b, a, game[e, ROW], game[e, COLUMN]] = True
                if not armed or game[e, ELEMENT] == beaten:
                    subgoals[b, a, game[e, ROW], game[e, COLUMN]] = armed
                    elements |= 1 << game[e, ELEMENT]
            if not armed:
                for e in range(items, items + rules.items):
                    if game[e, PRESENT] == 1 and elements >> game[e, ELEMENT] & 1:
                        subgoals[b, a, game[e, ROW], game[e, COLUMN]] = True
            for f in range(facts.shape[1]):
                if facts[b, f, RELATION] == BEATS and elements >> facts[b, f, OBJECT] & 1:
                    statements[b, a, facts[b, f, MANUAL_ROW]] = True
