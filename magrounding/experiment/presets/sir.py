"""The preset under which SIR learns to read RTFM: that of txt2π, with the heads and the lessons that SIR needs."""

from dataclasses import replace

from magrounding.experiment.presets.txt2pi import PLAIN_RTFM

QUICK = replace(
    PLAIN_RTFM,
    about=(
        "SIR with narrow layers and heads of two layers, taught the oracle's moves and reasons, with manuals that "
        "begin short and grow: minutes on a CPU core; episodes of at most 80 steps."
    ),
    agent="sir",
    network={
        "channels": (8, 16, 16, 16, 16),
        "embedding": 16,
        "hidden": 32,
        "width": 100,
        "head": "mlp",
        "reasons": True,
    },
)
