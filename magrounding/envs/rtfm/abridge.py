"""Kernels that leave out of an episode what makes it hard to read: statements that decide nothing, and the distractor.

Selecting one of seven statements through attention that starts uniform is what keeps txt2π from reading; what a
selected statement says is learnt fast. So manuals begin short, and grow as a curriculum lets them.
"""

from __future__ import annotations

from magrounding.envs.rtfm.arrays import ELEMENT, OMITTED, PRESENT, TARGET, TEAM
from magrounding.jit import inner_njit
from magrounding.seeding import below, hash64

_STATEMENTS, _DISTRACTOR = 1 << 12, 1 << 13
"""Counters from which the keys of these draws are made; nothing else of an episode draws there."""
_PARTS = 1 << 20


@inner_njit
def abridge(text_key, task_key, rules, scalars, entities):
    """Draw whether the distractor monster stays, and which statements are left out: bit k of OMITTED, statement k."""
    n, monsters = rules.agents, rules.monsters
    if rules.distraction < 1.0 and below(hash64(task_key, _DISTRACTOR), 0, _PARTS) >= rules.distraction * _PARTS:
        for e in range(n, n + monsters):
            if entities[e, TARGET] == 0:
                entities[e, PRESENT] = 0
    scalars[OMITTED] = 0
    if rules.omission == 0.0 and rules.decoys == 1.0:
        return
    needed = decoys = 0
    for e in range(n, n + monsters):
        if entities[e, PRESENT] == 1:
            # Statement k of letters says that letter k beats the next of the cycle.
            k = (entities[e, ELEMENT] + 2) % 3 if rules.letters else entities[e, ELEMENT]
            if entities[e, TARGET] == 1:
                needed |= 1 << k
            else:
                decoys |= 1 << k
    distracted, decoys = decoys != 0, decoys & ~needed
    if distracted:
        needed |= 1 << (4 + scalars[TEAM])
    key = hash64(text_key, _STATEMENTS)
    if below(key, rules.statements, _PARTS) < rules.decoys * _PARTS:
        needed, decoys = needed | decoys, 0
    for k in range(rules.statements):
        if decoys >> k & 1 or (needed >> k & 1 == 0 and below(key, k, _PARTS) < rules.omission * _PARTS):
            scalars[OMITTED] |= 1 << k
