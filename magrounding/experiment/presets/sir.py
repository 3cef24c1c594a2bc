"""The presets under which SIR learns to read: those of txt2π and of EMMA, with the heads and lessons that it needs."""

from dataclasses import replace

from magrounding.experiment.presets.messenger import QUICK_EMMA
from magrounding.experiment.presets.txt2pi import PLAIN_RTFM

_NARROW = {"channels": (8, 16, 16, 16, 16), "embedding": 16, "hidden": 32, "width": 100, "head": "mlp"}
"""Widths that a CPU core can train, and heads of two layers."""

QUICK = replace(
    PLAIN_RTFM,
    about=(
        "SIR with narrow layers and heads of two layers, taught the oracle's moves and reasons, with manuals that "
        "begin short and grow: minutes on a CPU core; episodes of at most 80 steps."
    ),
    agent="sir",
    network={**_NARROW, "reasons": True},
)

QUICK_MESSENGER = replace(QUICK_EMMA, network={**_NARROW, "symbol_table": True})
