"""The Guide of LGE (Golchha et al. 2024): which of thousands of actions can matter, from the task's text alone.

One network reads tasks and actions, s(τ, a) = cos(g(τ), g(a)) / λ. It learns from gold trajectories by contrast
(`learning.py`), is judged by the ranks of gold actions (`metrics.py`), and prunes what an explorer chooses from.
"""

from magrounding.agents.guide.guide import Guide, guide_digest, load_guide, save_guide

__all__ = ["Guide", "guide_digest", "load_guide", "save_guide"]
