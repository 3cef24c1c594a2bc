"""The Guide of LGE (Golchha et al. 2024): the relevant actions among thousands, from the task's text alone.

One network encodes tasks and actions, s(τ, a) = cos(g(τ), g(a)) / λ. It learns from gold trajectories by contrast
(`learning.py`), is evaluated by the ranks of gold actions (`metrics.py`), and prunes the actions of an explorer.
"""

from magrounding.extensions.lge.guide.guide import Guide, guide_digest, load_guide, save_guide

__all__ = ["Guide", "guide_digest", "load_guide", "save_guide"]
