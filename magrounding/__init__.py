"""magrounding: language-grounded multi-agent reinforcement learning. Importing it never imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magrounding.errors import MagroundingError
from magrounding.registration import register_envs
from magrounding.registry import AGENTS, ENVS, make, make_vec

if TYPE_CHECKING:
    from magrounding.agents.team import Team

__version__ = "0.1.0"
__all__ = ["AGENTS", "ENVS", "MagroundingError", "__version__", "load_team", "make", "make_vec"]

register_envs()


def load_team(source: str, **options: Any) -> Team:
    """Load trained agents, ready for a single env or a vector env (see `agents.team.load_team`).

    Args:
        source: a run folder, or "pretrained:<name>".
        options: seed, stage, device.
    """
    from magrounding.agents.team import load_team as load

    return load(source, **options)
