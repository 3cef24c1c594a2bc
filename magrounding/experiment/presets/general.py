"""The preset for every environment, also for those without one of their own: PPO, and a network that fits."""

from __future__ import annotations

import numpy as np

from magrounding.agents.building import build_policy
from magrounding.agents.policy import Policy
from magrounding.errors import MagroundingError
from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import EvaluationConfig, for_steps
from magrounding.experiment.presets import GENERAL
from magrounding.registry import AGENTS, describe, env_entry, is_simulator
from magrounding.spec import MASK, EnvSpec, Mask
from magrounding.teams.player import Player, shown_to
from magrounding.training.ppo import PPOConfig

_STEPS = 200_000


def general_preset(env: str) -> RunConfig:
    """PPO for any environment, judged on the sets of its plan.

    Raises:
        ConfigurationError: an unknown environment, or one that cannot be described.
    """
    entry = env_entry(env)
    config = entry.configure(**entry.with_stage(entry.curriculum[0]))
    agent = fitting_agent(describe(config))
    sets = tuple(entry.evaluation.sets)
    learner = PPOConfig(
        unroll=32, learning_rate=1e-3, warm_up=5_000, anneal_steps=_STEPS, gamma=0.98, entropy=0.02, final_entropy=0.002
    )
    phase = for_steps(learner, _STEPS, 16 if is_simulator(config) else 64)
    return RunConfig(
        preset=GENERAL,
        about=f"PPO alone with {agent}, the network that fits what {env} shows: a beginning, tuned for no environment.",
        agent=agent,
        phases={REMAINING_STAGES: (phase,)},
        share_from=3,
        evaluation=EvaluationConfig(
            every=50_000,
            selection_games=100,
            report_games=200,
            selection_set="train" if "train" in sets else sets[0],
            watched_sets=sets[:2],
            stage_sets=None,
        ),
    )


def fitting_agent(spec: EnvSpec) -> str:
    """The id of the agent that looks at all that a world shows, and asks for the most of it; of equals the first.

    Variants of another agent, and those that only an algorithm of their own trains, are left to who asks for them.
    """
    fits: list[tuple[int, str, Policy]] = []
    for entry in AGENTS.values():
        if entry.algorithm or entry.built_on or entry.env_options:
            continue
        try:
            policy = build_policy(entry.id, spec, {}, seed=0)
        except (MagroundingError, TypeError):  # it refuses the world, or wants a package or a file that is not there
            continue
        if policy.uses_all(spec):
            fits.append((len({*policy.accepts.fields} - {MASK}) + policy.accepts.grid, entry.id, policy))
    fits.sort(key=lambda fit: -fit[0])
    # One after another, as a first look compiles kernels; `fieldread`, which looks at anything, is always there.
    return next(id for _, id, policy in fits if _plays(policy, spec))


def _plays(policy: Policy, spec: EnvSpec) -> bool:
    """Return whether a network takes the observations: a field of the name that it asks for may be of another shape."""
    rng = np.random.default_rng(0)
    seen = spec.allocate(2)
    for field in spec.fields:
        array = seen[field.name]
        if isinstance(field, Mask):
            array.fill(1)
        elif np.isfinite([field.low, field.high]).all():
            array[...] = rng.uniform(field.low, field.high, array.shape)
    try:
        Player(policy, spec, 2).choose(shown_to(0, seen, spec, None), np.ones(2, np.bool_), greedy=True)
    except Exception:  # whatever it is that a network made for other shapes stumbles over
        return False
    return True
