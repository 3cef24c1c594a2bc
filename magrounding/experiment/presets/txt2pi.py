"""Presets under which txt2π, its baselines and EnDi on it learn to read: manuals that begin short and grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES
from magrounding.experiment.phase import Phase, Ramp, for_steps
from magrounding.experiment.presets.published import READS
from magrounding.experiment.presets.rtfm import ENDI_TAUGHT, QUICK_RTFM
from magrounding.training.imitation import ImitationConfig

_NARROW: dict[str, Any] = {
    "channels": (8, 16, 16, 16, 16),
    "embedding": 16,
    "head_width": 100,
    "document_hidden": 40,
}
"""Widths of txt2π and of its baselines that two CPU cores can train."""


def _read(steps: int, ramps: Mapping[str, Ramp] | None = None) -> Phase:
    """DAgger for `steps` environment steps, in which manuals grow from what a game needs to all statements.

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
    # The shortest manuals stay until agents can walk: one seed of three that was late did not learn to read without it.
    growing = {"omission": Ramp(1.0, 0.0, hold=steps / 6, over=steps / 2)}
    return for_steps(learner, steps, 128, ramps=growing if ramps is None else ramps, gate=READS)


def _read_on(steps: int) -> Phase:
    """The same where a distractor is about: what beats it joins first, and then all other statements."""
    decoys = Ramp(0.0, 1.0, hold=steps / 6, over=steps / 4.5)
    return _read(steps, {"decoys": decoys, "omission": Ramp(1.0, 0.0, hold=steps / 2.5, over=steps / 4)})


PLAIN_RTFM = replace(
    QUICK_RTFM,
    about=(
        "txt2π of a quarter of its width, by imitation of the oracle, with manuals that begin short and grow: minutes "
        "on a CPU core; episodes of at most 80 steps."
    ),
    agent="txt2pi",
    phases={REMAINING_STAGES: (_read(900_000),)},
    network=_NARROW,
    unlearnt="stop",
)

CONTROLS = PLAIN_RTFM.ungated
"""The same for networks that are shown because they do not read."""

QUICK_REASONS_RTFM = replace(
    PLAIN_RTFM,
    preset="quick_reasons",
    about=(
        "The paper's txt2π, of a third of its width, taught the oracle's reasons beside its moves: whom it is after, "
        "what it reaches next, and which statements say so. Two monsters are read so too."
    ),
    phases={REMAINING_STAGES: (_read_on(900_000),)},
    network={**_NARROW, "channels": (16, 24, 24, 24, 24), "reasons": True},
)

# One network learns from the games of all, and from their reasons, in half of the time.
QUICK_REASONS_MA_RTFM = replace(QUICK_REASONS_RTFM, share_from=2)

QUICK_REASONS_ENDI = replace(
    QUICK_REASONS_MA_RTFM,
    agent="endi_dis",
    about="EnDi on txt2π as txt2π in the preset of this name, with the features normalized that divide the goals.",
    network={**QUICK_REASONS_MA_RTFM.network, "normalize_goals": True},
)

QUICK_RTFM = replace(
    QUICK_REASONS_RTFM,
    preset="quick",
    about=(
        "txt2π of a third of its width, by imitation of the oracle's moves and reasons. Names share one vector, and a "
        "map shows where those stand that it attends to: words never seen are read as all others. Manuals begin short "
        "and grow, then a stage's weights begin the next: minutes on a CPU core; episodes of at most 80 steps."
    ),
    phases={
        **dict.fromkeys(("simple_stationary_single_monster", "simple_stationary", "s1"), (_read_on(450_000),)),
        REMAINING_STAGES: (_read(450_000, {}),),
    },
    network={**QUICK_REASONS_RTFM.network, "names": "shared", "match": "equal"},
)

QUICK_MA_RTFM = replace(QUICK_RTFM, share_from=2)

QUICK_ENDI = replace(QUICK_MA_RTFM, agent="endi_dis", network={**QUICK_MA_RTFM.network, "normalize_goals": True})
