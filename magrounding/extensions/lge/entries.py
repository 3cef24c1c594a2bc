"""The agents, algorithms, presets and commands of DRRN and LGE, by name."""

from magrounding.registry import (
    COMMANDS,
    AgentEntry,
    AlgorithmEntry,
    CommandEntry,
    PresetEntry,
    register_agent,
    register_algorithm,
    register_preset,
)

_DRRN = "magrounding.extensions.lge.drrn.network:Drrn"
AGENTS = (
    AgentEntry("drrn", _DRRN, algorithm="drrn"),
    AgentEntry("drrn_bow", _DRRN, {"reader": "bag"}, built_on="drrn", algorithm="drrn"),
    AgentEntry("drrn_bc", _DRRN, built_on="drrn"),
    AgentEntry("lge", "magrounding.extensions.lge.agent:Lge", built_on="drrn", algorithm="lge"),
)
ALGORITHMS = (
    AlgorithmEntry("lge", "magrounding.extensions.lge.learner:LgeLearnerConfig", own_agents=True),
    AlgorithmEntry("drrn", "magrounding.extensions.lge.drrn_learner:DrrnLearnerConfig", own_agents=True),
)
_PRESETS = {
    "paper": "scienceworld_presets:PAPER_SCIENCEWORLD",
    "quick": "scienceworld_presets:QUICK_SCIENCEWORLD",
    "quick_lge": "presets:QUICK_LGE",
    "quick_lge_inc": "presets:QUICK_LGE_INC",
    "quick_lge_released": "presets:QUICK_LGE_RELEASED",
    "quick_gold": "presets:QUICK_GOLD",
    "paper_lge": "presets:PAPER_LGE",
    "paper_lge_inc": "presets:PAPER_LGE_INC",
    "paper_lge_released": "presets:PAPER_LGE_RELEASED",
}
_COMMANDS = {
    "guide": ("Train LGE's Guide, which selects the relevant ones among many valid actions.", "replay"),
    "pieces": ("Train a vocabulary of word pieces on an environment's texts.", "publish"),
}


def register() -> None:
    """Enter them."""
    for agent in AGENTS:
        register_agent(agent)
    for algorithm in ALGORITHMS:
        register_algorithm(algorithm)
    for name, place in _PRESETS.items():
        register_preset(PresetEntry(name, "scienceworld", f"magrounding.extensions.lge.{place}"))
    for name, (about, behind) in _COMMANDS.items():
        COMMANDS[name] = CommandEntry(name, about, f"magrounding.extensions.lge.cli.{name}", behind)
