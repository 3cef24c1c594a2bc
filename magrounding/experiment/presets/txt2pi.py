"""Presets under which txt2π, its baselines and EnDi on it learn to read: manuals that begin short and grow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES
from magrounding.experiment.phase import Phase, Ramp, for_steps
from magrounding.experiment.presets.published import READS
from magrounding.experiment.presets.rtfm import ENDI_TAUGHT, QUICK_RTFM
from magrounding.training.imitation import ImitationConfig

_WIDTHS: dict[str, Any] = {
    "channels": (16, 24, 24, 24, 24),
    "embedding": 16,
    "head_width": 100,
    "document_hidden": 40,
}
"""Widths of txt2π and of its baselines that two CPU cores can train."""


def _read(steps: int, **ramps: Ramp) -> Phase:
    """DAgger for `steps` environment steps.

    What a statement says of the map is learnt in 100,000 steps; which of seven statements to attend to is not, from
    attention that starts uniform. One gradient step takes 512 states of 128 games: many manuals matter more than many
    steps of each.
    """
    learner = ImitationConfig(
        unroll=4,
        epochs=1,
        minibatches=1,
        learning_rate=2e-3,
        anneal_steps=steps,
        teacher_steps=steps,
        teacher_noise=0.2,
        value_coefficient=0.02,
        entropy=0.0,
        weights=ENDI_TAUGHT,
        bf16=True,
    )
    return for_steps(learner, steps, 128, ramps=ramps, gate=READS)


def _read_on(steps: int) -> Phase:
    """The same with manuals that grow from what a game needs: what beats distractors joins first, then all others.

    The shortest manuals stay until agents can walk: one seed of three that was late did not learn to read without it.
    """
    decoys = Ramp(0.0, 1.0, hold=steps / 6, over=steps / 4.5)
    return _read(steps, decoys=decoys, omission=Ramp(1.0, 0.0, hold=steps / 2.5, over=steps / 4))


QUICK_REASONS_RTFM = replace(
    QUICK_RTFM,
    preset="quick_reasons",
    about=(
        "The paper's txt2π, of a third of its width, by imitation of the oracle's moves and reasons: whom it is after, "
        "what it reaches next, and which statements say so. Manuals begin short and grow: minutes on a CPU core; "
        "episodes of at most 80 steps."
    ),
    agent="txt2pi",
    phases={REMAINING_STAGES: (_read_on(900_000),)},
    network={**_WIDTHS, "reasons": True},
    unlearnt="stop",
)

# One network learns from the games of all, and from their reasons, in half of the time.
QUICK_REASONS_MA_RTFM = replace(QUICK_REASONS_RTFM, share_from=2)

QUICK_REASONS_ENDI = replace(
    QUICK_REASONS_MA_RTFM,
    agent="endi_dis",
    about="EnDi on txt2π as txt2π in the preset of this name, with the features normalized that divide the goals.",
    network={**QUICK_REASONS_MA_RTFM.network, "normalize_goals": True},
)

_LETTERS = ("released", "permutation", "new_edge", "new_node")
_FIRST = ("simple_stationary_single_monster", "simple_stationary", "s1", *_LETTERS)
"""Stages of RTFM's worlds that are learnt from nothing."""

QUICK_RTFM = replace(
    QUICK_REASONS_RTFM,
    preset="quick",
    about=(
        "txt2π of a third of its width, by imitation of the oracle's moves and reasons. Names share one vector, and a "
        "map shows where those stand that it attends to: words never seen are read as all others. Manuals begin short "
        "and grow, then a stage's weights begin the next: minutes on a CPU core; episodes of at most 80 steps."
    ),
    phases={
        **dict.fromkeys(_FIRST, (_read_on(450_000),)),
        REMAINING_STAGES: (_read(450_000),),
    },
    network={**QUICK_REASONS_RTFM.network, "names": "shared", "match": "equal"},
)

# Whose oracle gives no reasons.
QUICK_LETTERS = replace(QUICK_RTFM, network={**QUICK_RTFM.network, "reasons": False})

NO_MODULATION, NO_MODULATION_LETTERS = QUICK_RTFM.ungated, QUICK_LETTERS.ungated
NO_TASK_ATTENTION = replace(QUICK_REASONS_RTFM.ungated, preset="quick", phases=QUICK_RTFM.phases)
CONTROLS = replace(NO_TASK_ATTENTION, network=_WIDTHS)
"""The same for networks that are shown because they do not read, with as much of it as each has a place for."""

# Two agents that read .88 after 450,000 steps of S1 were still learning (docs/txt2pi.md).
QUICK_MA_RTFM = replace(QUICK_RTFM, share_from=2, phases={**QUICK_RTFM.phases, "s1": (_read_on(900_000),)})

QUICK_ENDI = replace(QUICK_MA_RTFM, agent="endi_dis", network={**QUICK_MA_RTFM.network, "normalize_goals": True})
