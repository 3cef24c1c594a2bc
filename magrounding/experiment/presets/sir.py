"""The presets under which SIR learns to read: those of txt2π and of EMMA, with the heads and lessons that it needs."""

from dataclasses import replace

from magrounding.experiment.presets.messenger import QUICK_EMMA
from magrounding.experiment.presets.txt2pi import QUICK_RTFM

_NARROW = {"channels": (8, 16, 16, 16, 16), "embedding": 16, "hidden": 32, "width": 100, "head": "mlp"}
"""Widths that a CPU core can train, and heads of two layers."""

QUICK = replace(
    QUICK_RTFM,
    about=(
        "SIR of narrow layers and heads of two layers, as txt2π in the preset of this name: by imitation of the "
        "oracle's moves and reasons, with names that share a vector and a map that shows where they stand."
    ),
    agent="sir",
    network={**_NARROW, "reasons": True, "names": "shared", "match": "equal"},
)

QUICK_MESSENGER = replace(QUICK_EMMA, network={**_NARROW, "symbol_table": True})
