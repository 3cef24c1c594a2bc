"""Registration of what comes with the package: lists that stand next to what they list."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from magrounding import extensions
from magrounding.agents.entries import AGENTS
from magrounding.endi.entries import AGENTS as ENDI_AGENTS
from magrounding.envs.messenger.entry import ENVS as MESSENGER
from magrounding.envs.rtfm.entry import ENVS as RTFM
from magrounding.experiment.presets.entries import PRESETS
from magrounding.registry import register_agent, register_algorithm, register_env, register_preset
from magrounding.single.alfworld.entry import ENVS as ALFWORLD
from magrounding.single.babyai.entry import ENVS as BABYAI
from magrounding.single.nethack.entry import ENVS as NETHACK
from magrounding.single.scienceworld.entry import ENVS as SCIENCEWORLD
from magrounding.single.touchdown.entry import ENVS as TOUCHDOWN
from magrounding.training.entries import ALGORITHMS


def register_builtin() -> None:
    """Register what the core and each extension have; nothing of it is imported but the lists."""
    for env in (*RTFM, *MESSENGER, *BABYAI, *ALFWORLD, *SCIENCEWORLD, *NETHACK, *TOUCHDOWN):
        register_env(env)
    for agent in (*AGENTS, *ENDI_AGENTS):
        register_agent(agent)
    for algorithm in ALGORITHMS:
        register_algorithm(algorithm)
    for preset in PRESETS:
        register_preset(preset)
    for extension in iter_modules(extensions.__path__, f"{extensions.__name__}."):
        import_module(f"{extension.name}.entries").register()
